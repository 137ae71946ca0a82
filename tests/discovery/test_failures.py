"""Prior runs that the program itself ends with an error are told of, counted, and left out."""

import warnings
from functools import partial

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pyro
import pyro.distributions as pdist
import pytest
import torch
from scipy import stats

import pathmix
from pathmix import errors
from pathmix.discovery import PriorDiscovery
from tests import exact, paths

LIBRARIES = pytest.mark.parametrize(
    ("sample", "d", "number"),
    [(numpyro.sample, dist, float), (pyro.sample, pdist, torch.tensor)],
    ids=["numpyro", "pyro"],
)


discover = partial(paths.discover, samples=400)


@LIBRARIES
def test_an_assert_that_fails_in_some_runs(sample, d, number):
    """A half-normal by way of an assert: log Z is that of the normal restricted to z > -0.5."""

    def model(y):
        z = sample("z", d.Normal(0.0, 1.0))
        assert z > -0.5, "too small"
        sample("y", d.Normal(z, 1.0), obs=y)

    with pytest.warns(
        pathmix.PathmixWarning,
        match=r"AssertionError: too small at test_failures.py:\d+, after the site 'z', in \d+ of 400 "
        r"prior runs \(first in run \d+ of seed 3\).*restricted to runs that do not fail",
    ) as caught:
        options = {"budget": 4_000, "weights": "elbo", "discovery": PriorDiscovery(400)}
        posterior = exact.fit(model, number(1.0), seed=3, **options)
    assert len(caught) == 1 and caught[0].filename == exact.__file__
    share = posterior.discovery.failed_runs / 400
    assert share == pytest.approx(stats.norm.cdf(-0.5), abs=5 * np.sqrt(0.31 * 0.69 / 400))
    assert list(posterior.weights) == ["z > -0.5"]
    log_z = stats.norm.logpdf(1, 0, np.sqrt(2)) + stats.norm.logsf(-0.5, 0.5, np.sqrt(0.5))
    assert posterior.elbo == pytest.approx(log_z, abs=0.05) and posterior.elbo < log_z + 0.01
    (note,) = (note for note in posterior.notes if "error of the program" in note)
    assert note.startswith(f"{posterior.discovery.failed_runs} of 400 prior runs") and note in str(posterior)


@LIBRARIES
def test_all_that_share_the_decisions_fail_together(sample, d, number):
    quarters = torch.ones(4) / 4 if d is pdist else jnp.ones(4) / 4

    def model():
        k = int(sample("k", d.Categorical(probs=quarters)))
        if k == 3:
            raise ValueError("no such thing")
        x = sample("x", d.Normal(0.0, 1.0))
        if k == 2 and x < 0:
            raise KeyError("k")

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = discover(model)
    said = [str(warning.message) for warning in caught]
    assert len(said) == 2 and {text.split(": ")[0] for text in said} == {
        "The program raised ValueError",
        "The program raised KeyError",
    }
    assert found.failed_runs == pytest.approx(400 * 3 / 8, abs=5 * np.sqrt(400 * 15 / 64))
    assert sum(path.followers for path in found.paths) + found.failed_runs == 400
    assert {dict(path.slp.path.pinned)["k"] for path in found.paths} == {0, 1, 2}
    # What failed is neither seen nor unseen; the probabilities of the others stay as they are.
    masses = {dict(path.slp.path.pinned)["k"]: path.prior_mass for path in found.paths}
    assert masses[0] == masses[1] == pytest.approx(0.25)
    assert masses[2] == pytest.approx(1 / 8, abs=0.08)
    assert found.unseen_mass == 0 and not found.unseen_is_exact


@LIBRARIES
def test_where_every_run_fails_the_error_itself_is_raised(sample, d, number):
    def model():
        sample("x", d.Normal(0.0, 1.0))
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine") as caught:
        discover(model)
    assert caught.traceback[-1].name == "model"
    note = caught.value.__notes__[-1]
    assert "test_failures.py:" in note and "after the site 'x'" in note and "all 400 prior runs" in note


def test_errors_of_pyTorch_on_some_values_are_failures_too():
    def model():
        z = pyro.sample("z", pdist.Normal(1.0, 1.0))
        factor = torch.linalg.cholesky(z * torch.eye(2))
        pyro.sample("y", pdist.MultivariateNormal(torch.zeros(2), scale_tril=factor), obs=torch.zeros(2))

    with pytest.warns(pathmix.PathmixWarning, match=r"cholesky.*test_failures.py:\d+, after the site 'z'"):
        found = discover(model, samples=100)
    assert found.failed_runs == pytest.approx(16, abs=18)
    assert np.all(found.paths[0].draws["z"] > 0)


@LIBRARIES
def test_mistakes_stay_errors_on_whatever_path(sample, d, number):
    def model():
        if sample("k", d.Bernoulli(0.2)):
            sample("x", d.Normal(0.0, 1.0))
            sample("x", d.Normal(0.0, 1.0))

    with pytest.raises(errors.DuplicateSiteError):
        discover(model)


@LIBRARIES
def test_a_large_discovery_counts_every_failed_run_once(sample, d, number):
    """NumPyro's runs go in batches that grow, and whose last rows run alone."""
    samples = 6_000 if d is dist else 300

    def model():
        k = sample("k", d.Geometric(0.3))
        assert k < 4, "many"
        sample("x", d.Normal(0.0, 1.0))

    with pytest.warns(pathmix.PathmixWarning, match="AssertionError: many"):
        found = discover(model, samples=samples)
    assert found.failed_runs == pytest.approx(samples * 0.7**4, abs=5 * np.sqrt(samples * 0.25 * 0.75))
    share = 1 - found.failed_runs / samples
    assert sum(path.prior_mass for path in found.paths) == pytest.approx(1 - 0.7**4)
    assert share == pytest.approx(1 - 0.7**4, abs=0.13)


@LIBRARIES
@pytest.mark.parametrize("improper", [True, False])
def test_a_prior_that_cannot_be_drawn_from(sample, d, number, improper):
    class Drawless(d.Normal):
        def sample(self, *args, **kwargs):
            raise NotImplementedError

        rsample = sample

    prior = d.ImproperUniform(d.constraints.real, (), ()) if improper else Drawless(0.0, 1.0)

    def model(y):
        x = sample("x", prior)
        sample("y", d.Normal(x, 1.0), obs=y)

    said = "an improper prior" if improper else "a prior without draws"
    with pytest.raises(
        errors.UnsupportedSiteError, match=rf"'x' at test_failures.py:\d+ has {said} .*needs a proper prior"
    ):
        discover(model, number(1.0))


def walk(sample, d, number):
    """Steps until zero is crossed: half of all runs end at once, and one in a hundred after thousands."""

    def model(y):
        x, n = number(1.0), 0
        while x > 0:
            x, n = x + sample(f"step_{n}", d.Normal(0.0, 1.0)), n + 1
        sample("y", d.Normal(float(n), 1.0), obs=y)

    return model


@LIBRARIES
def test_runs_that_do_not_end_are_counted_and_left_out(sample, d, number):
    """With the observed site, four steps are left to cross zero; the others are unseen."""
    with pytest.warns(
        pathmix.PathmixWarning,
        match=r"\d\d\.\d% of the prior runs did not end within 5 sites \(first in run \d+ of seed 0, at "
        r"test_failures.py:\d+, after the site '\w+'\). Their paths are left out; a larger max_sites",
    ):
        found = discover(walk(sample, d, number), number(3.0), max_sites=5)
    generator = np.random.default_rng(0)
    positions = 1.0 + np.cumsum(generator.normal(size=(100_000, 4)), axis=1)
    share = np.mean(np.all(positions > 0, axis=1))
    assert found.endless_runs / 400 == pytest.approx(share, abs=5 * np.sqrt(share * (1 - share) / 400))
    assert found.failed_runs == 0 and len(found.paths) == 4
    assert sum(path.followers for path in found.paths) + found.endless_runs == 400
    assert share < found.unseen_bound < 1 and found.unseen_mass >= found.endless_runs / 400


@LIBRARIES
def test_a_posterior_says_which_runs_it_leaves_out(sample, d, number):
    with pytest.warns(pathmix.PathmixWarning, match="did not end within 3 sites"):
        discovery = PriorDiscovery(50, max_sites=3)
        posterior = exact.fit(walk(sample, d, number), number(1.0), budget=600, discovery=discovery)
    count = posterior.discovery.endless_runs
    assert f"{count} of 50 prior runs did not end within max_sites and max_seconds" in str(posterior)
    assert not posterior.verdict.ok


@LIBRARIES
def test_nobody_waits_for_a_heavy_tail(sample, d, number):
    """Unless told otherwise, a run has ten times the sites of the average one, or 300."""
    with pytest.warns(pathmix.PathmixWarning, match="did not end within 300 sites"):
        found = discover(walk(sample, d, number), number(3.0), samples=60)
    assert 0 < found.endless_runs < 15
    assert max(len(path.slp.sites) for path in found.paths) <= 300


@LIBRARIES
def test_long_runs_are_waited_for_if_there_are_no_short_ones(sample, d, number):
    def model(y):
        x = sample("x", d.Normal(0.0, 1.0))
        for n in range(400 if x > 0 else 450):
            sample(f"y_{n}", d.Normal(x, 1.0), obs=y)

    found = discover(model, number(0.3), samples=20)
    assert len(found.paths) == 2 and found.endless_runs == 0


@LIBRARIES
def test_endless_recursion_on_one_side(sample, d, number):
    def deeper(n):
        return deeper(n + 1)

    def model(y):
        x = sample("x", d.Normal(0.0, 1.0))
        if x > 1.5:
            deeper(0)
        sample("y", d.Normal(x, 1.0), obs=y)

    with pytest.warns(pathmix.PathmixWarning, match="did not end before Python's limit on recursion"):
        found = discover(model, number(0.3))
    share = stats.norm.sf(1.5)
    assert found.endless_runs / 400 == pytest.approx(share, abs=5 * np.sqrt(share / 400))
    assert len(found.paths) == 1


@LIBRARIES
def test_a_program_without_an_end_says_so_before_all_runs_were_tried(sample, d, number):
    runs = []

    def model():
        runs.append(1)
        n = 0
        while sample(f"x_{n}", d.Normal(0.0, 1.0)) < 100:
            n += 1

    with pytest.raises(errors.RunawayProgramError, match=r"max_sites=20 .*'x_20' at test_failures.py:\d+"):
        discover(model, max_sites=20)
    assert len(runs) < 110
