"""What is said about paths that were never seen: exact where it can be, and else a bound that holds."""

from functools import partial

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pyro
import pyro.distributions as pdist
import pytest
import torch
from pyro import poutine
from scipy import stats

import pathmix
from experiments.baselines import BBVI
from pathmix.discovery import PriorDiscovery
from pathmix.discovery.cells import Cell
from pathmix.discovery.unseen import Sighting, at_most, prior_mass
from pathmix.methods.dcc import DCC
from tests import exact, paths

discover = partial(paths.discover, samples=200)


def numpyro_steps(y=None):
    i = 0
    while numpyro.sample(f"on{i}", dist.Bernoulli(0.5)):
        i += 1
    numpyro.sample("y", dist.Normal(i, 1.0), obs=y)


def pyro_steps(y=None):
    i = 0
    while pyro.sample(f"on{i}", pdist.Bernoulli(0.5)):
        i += 1
    pyro.sample("y", pdist.Normal(i, 1.0), obs=y)


@pytest.mark.parametrize("model", [numpyro_steps, pyro_steps])
@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_the_tail_of_a_loop_is_known_exactly(model, precision):
    found = discover(model, torch.tensor(20.0) if model is pyro_steps else 20.0, precision=precision)
    lengths = [len(path.slp.path.pinned) for path in found.paths]
    for path, length in zip(found.paths, lengths, strict=True):
        assert path.prior_mass == pytest.approx(2.0**-length, rel=1e-5)
    assert found.unseen_is_exact and found.unseen_bound == found.unseen_mass
    unseen = 1 - sum(2.0**-length for length in lengths)
    assert found.unseen_mass == pytest.approx(unseen, rel=1e-3 if precision == "float32" else 1e-9)


def numpyro_fault(y):
    broken = numpyro.sample("fault", dist.Bernoulli(0.0002))
    numpyro.sample("y", dist.Normal(10.0 * broken, 1.0), obs=y)


def pyro_fault(y):
    broken = pyro.sample("fault", pdist.Bernoulli(0.0002))
    pyro.sample("y", pdist.Normal(10.0 * broken, 1.0), obs=y)


@pytest.mark.parametrize(("model", "y"), [(numpyro_fault, 10.0), (pyro_fault, torch.tensor(10.0))])
def test_a_rare_value_that_was_never_drawn(model, y):
    posterior = exact.fit(model, y, budget=10, discovery=PriorDiscovery(200))
    assert list(posterior.weights) == ["fault=0"]
    assert posterior.discovery.unseen_mass == posterior.discovery.unseen_bound == pytest.approx(0.0002)
    assert posterior.paths[0].prior_mass == pytest.approx(0.9998)
    assert "Unseen: 0.02% of the prior mass, exactly" in str(posterior)
    assert not any("prior mass" in note for note in posterior.notes)


def masked(k, p):
    """The draw of a masked or scaled site is as likely as that of any other."""
    with numpyro.handlers.mask(mask=False), numpyro.handlers.scale(scale=7.0):
        return numpyro.sample(f"k{k}", dist.Bernoulli(p).expand([2]).to_event(1))


def pyro_masked(k, p):
    with poutine.mask(mask=False), poutine.scale(scale=7.0):
        return pyro.sample(f"k{k}", pdist.Bernoulli(p).expand([2]).mask(False).to_event(1))


@pytest.mark.parametrize(("site", "normal"), [(masked, dist.Normal), (pyro_masked, pdist.Normal)])
def test_masks_and_scales_leave_draws_as_likely_as_they_were(site, normal):
    sample = numpyro.sample if normal is dist.Normal else pyro.sample

    def model():
        site(0, 0.25)
        sample("x", normal(0.0, 1.0))

    found = discover(model)
    wanted = {(0, 0): 0.5625, (0, 1): 0.1875, (1, 0): 0.1875, (1, 1): 0.0625}
    for path in found.paths:
        assert path.prior_mass == pytest.approx(wanted[dict(path.slp.path.pinned)["k0"]])
    assert found.unseen_is_exact and found.unseen_mass == 0


def numpyro_mixed():
    """k decides with known probability; then a continuous value decides, and it sets that of j."""
    if numpyro.sample("k", dist.Categorical(probs=jnp.array([0.5, 0.3, 0.2]))) == 2:
        return
    x = numpyro.sample("x", dist.Normal(0, 1))
    if x < 0:
        numpyro.sample("j", dist.Bernoulli(jnp.exp(x)))


def pyro_mixed():
    if pyro.sample("k", pdist.Categorical(torch.tensor([0.5, 0.3, 0.2]))) == 2:
        return
    x = pyro.sample("x", pdist.Normal(0.0, 1.0))
    if x < 0:
        pyro.sample("j", pdist.Bernoulli(torch.exp(x)))


@pytest.mark.parametrize("model", [numpyro_mixed, pyro_mixed])
def test_the_discrete_part_is_exact_where_continuous_values_decide_later(model):
    found = discover(model)
    assert len(found.paths) == 7
    by_k = np.zeros(3)
    for path in found.paths:
        by_k[dict(path.slp.path.pinned)["k"]] += path.prior_mass
    np.testing.assert_allclose(by_k, [0.5, 0.3, 0.2], rtol=1e-9)
    for path in found.paths:
        pinned = dict(path.slp.path.pinned)
        if pinned["k"] == 2:
            continue
        # Half of x is below zero; what j does there, the runs must tell.
        alike = [p for p in found.paths if dict(p.slp.path.pinned).items() >= {("k", pinned["k"])}]
        runs = sum(p.followers for p in alike if "j" in dict(p.slp.path.pinned))
        share = path.followers / runs if "j" in pinned else 1.0
        assert path.prior_mass == pytest.approx(0.5 * by_k[pinned["k"]] * share)
    # Both values of j were seen wherever it is drawn, so there is no other path.
    assert found.unseen_is_exact and found.unseen_bound == 0


def test_values_without_end_leave_something_unseen():
    """Their probabilities are drawn, so what is left is an estimate."""

    def model():
        x = numpyro.sample("x", dist.Normal(0, 1))
        if numpyro.sample("j", dist.Poisson(jnp.exp(x))) > 2:
            numpyro.sample("z", dist.Normal(0, 1))

    found = discover(model)
    assert not found.unseen_is_exact and 0 < found.unseen_mass <= found.unseen_bound < 0.2


def test_a_discrete_site_after_a_continuous_decision_is_not_taken_for_all_of_it():
    """Half of the runs draw k, so a path with k=1 has a mass of 0.45, not of 0.9."""

    def model():
        if numpyro.sample("x", dist.Normal(0, 1)) < 0:
            numpyro.sample("k", dist.Bernoulli(0.9))

    found = discover(model, samples=100)
    masses = {path.slp.path.pinned: path.prior_mass for path in found.paths}
    assert masses == pytest.approx({(): 0.5, (("k", 0),): 0.05, (("k", 1),): 0.45})
    assert found.unseen_is_exact and found.unseen_bound == 0


def test_a_long_loop_does_not_exhaust_the_stack():
    def model():
        k = numpyro.sample("k", dist.Bernoulli(0.5))
        p = 0.5
        for _ in range(300):
            p = p * 0.9999 + 0.00001 * k
        numpyro.sample("j", dist.Bernoulli(p))

    found = discover(model, samples=32)
    assert found.unseen_is_exact and found.unseen_mass == pytest.approx(0, abs=1e-9)


def test_paths_that_were_cut_off_are_not_unseen():
    def model():
        k = numpyro.sample("k", dist.Categorical(probs=jnp.ones(8) / 8))
        numpyro.sample("x", dist.Normal(int(k), 1))

    with pytest.warns(pathmix.PathmixWarning, match="beyond max_paths=3"):
        found = discover(model, samples=800, max_paths=3)
    assert [path.prior_mass for path in found.paths] == pytest.approx([1 / 8] * 3)
    assert found.dropped_mass == pytest.approx(5 / 8, abs=0.08)
    assert found.unseen_mass == 0 and found.unseen_bound < 0.01 and not found.unseen_is_exact


def test_a_note_from_one_percent_on():
    def model(y):
        k = numpyro.sample("k", dist.Geometric(0.05))
        numpyro.sample("y", dist.Normal(int(k), 1), obs=y)

    posterior = exact.fit(model, 3.0, budget=10, discovery=PriorDiscovery(60))
    seen = [path.pinned["k"] for path in posterior.paths]
    assert posterior.discovery.unseen_mass == pytest.approx(1 - sum(0.05 * 0.95**k for k in seen))
    (note,) = (note for note in posterior.notes if "no prior run took" in note)
    assert note.startswith(f"{posterior.discovery.unseen_mass:.1%} of the prior mass")
    assert "PriorDiscovery(600)" in note and note in str(posterior)


def test_where_continuous_values_decide_the_line_states_a_bound():
    def model(y):
        x, z = (numpyro.sample(name, dist.Normal(0, 1)) for name in "xz")
        rare = x + z > 9  # which no run has seen
        numpyro.sample("y", dist.Normal(2.0 if rare else 1.0 if x < 0 else -1.0, 1), obs=y)

    posterior = exact.fit(model, 0.5, budget=10, discovery=PriorDiscovery(1_000))
    assert posterior.discovery.unseen_mass == 0
    assert posterior.discovery.unseen_bound == pytest.approx(1 - 0.05 ** (1 / 750))
    assert "Unseen: at most 0.4% of the prior mass (95%)" in str(posterior)
    assert posterior.notes == () and not posterior.verdict.ok


def test_where_both_sides_of_every_condition_were_seen_nothing_is_unseen():
    def model(y):
        mean = -1.0
        if numpyro.sample("x", dist.Normal(0, 1)) < 0:
            mean = 0.0 if numpyro.sample("z", dist.Normal(0, 1)) < 1 else 1.0
        numpyro.sample("y", dist.Normal(mean, 1), obs=y)

    posterior = exact.fit(model, 0.5, budget=10, discovery=PriorDiscovery(1_000))
    assert len(posterior.paths) == 3 and posterior.discovery.unseen_bound == 0
    assert posterior.discovery.unseen_is_exact and posterior.verdict.ok


def test_baselines_tell_the_same():
    def model(y):
        k = numpyro.sample("k", dist.Bernoulli(0.01))
        z = numpyro.sample("z", dist.Normal(3.0 * k, 1))
        numpyro.sample("y", dist.Normal(z, 1), obs=y)

    discovery = PriorDiscovery(8)
    sampled = DCC(model, iterations=2, discovery=discovery, progress=False).run(0, 0.5)
    assert sampled.discovery.unseen_bound == pytest.approx(0.01)
    assert "Unseen: 1% of the prior mass, exactly" in str(sampled)
    # Draws of the guide of BBVI find the other path, which is then unseen no more.
    guided = BBVI(model, steps=50, discovery=discovery, progress=False).run(0, 0.5)
    assert {path.pinned["k"]: path.prior_mass for path in guided.paths} == pytest.approx({0: 0.99, 1: 0.01})
    assert guided.discovery.unseen_mass == guided.discovery.unseen_bound == pytest.approx(0, abs=1e-12)
    assert "1 path was found after discovery" in str(guided)


TAILS = {
    "one rare path": np.array([0.985, 0.015]),
    "equal paths": np.full(60, 1 / 60),
    "many rare paths": np.array([0.7, *np.full(100, 0.003)]),
    "geometric": 0.3 * 0.7 ** np.arange(60),
    "heavy tail": 1 / np.arange(1, 3_000) ** 1.3,
}


@pytest.mark.parametrize("name", TAILS)
def test_the_bound_holds_in_95_of_100_discoveries(name):
    """Programs of known tail, all of whose branches are continuous, run 200 times in each discovery."""
    masses, runs, repeats = TAILS[name] / TAILS[name].sum(), 200, 2_000
    generator, covered, errors = np.random.default_rng(0), 0, []
    for _ in range(repeats):
        draws = generator.choice(len(masses), size=runs, p=masses)
        paths, first, counts = np.unique(draws, return_index=True, return_counts=True)
        everything = Cell((), 1.0, is_path=False)
        seen = [Sighting(everything, int(c), int(f)) for c, f in zip(counts, first, strict=True)]
        found = prior_mass(seen, runs, is_whole=True)
        unseen = 1 - masses[paths].sum()
        covered += unseen <= found.bound + 1e-12
        errors.append(found.unseen - unseen)
        assert 0 <= found.unseen <= found.bound <= 1
    # 95% less four standard errors of this simulation.
    assert covered / repeats > 0.95 - 4 * np.sqrt(0.05 * 0.95 / repeats)
    # On average, Good and Turing's estimate is off by the paths that are seen once: 1 / runs at most.
    assert abs(np.mean(errors)) < 1 / runs + 4 * np.std(errors) / np.sqrt(repeats)


def test_paths_that_prior_runs_never_took_do_not_raise_the_bound():
    """A guided search comes to them by other ways, which tell nothing of how much else there is."""
    everything = Cell((), 1.0, is_path=False)
    seen = [Sighting(everything, 100, 0), Sighting(everything, 99, 1), Sighting(everything, 1, 120)]
    led = [Sighting(everything, 0, 200) for _ in range(50)]
    assert prior_mass([*seen, *led], 200, is_whole=True).bound == prior_mass(seen, 200, is_whole=True).bound


@pytest.mark.parametrize(("events", "runs"), [(0, 1), (0, 750), (1, 10), (7, 150), (150, 150), (400, 20_000)])
def test_the_limit_of_clopper_and_pearson(events, runs):
    wanted = 1.0 if events == runs else stats.beta.ppf(0.95, events + 1, runs - events)
    assert at_most(events, runs) == pytest.approx(wanted, rel=1e-9)


def test_densities_that_are_no_probabilities_are_not_taken_for_them():
    """Two paths cannot have 0.8 each; what they were seen with is all that is known then."""
    seen = [Sighting(Cell((("k", k),), 0.8, is_path=True), 50, k) for k in (0, 1)]
    found = prior_mass(seen, 100, is_whole=True)
    assert found.masses == (0.5, 0.5) and not found.is_exact
    nan = [Sighting(Cell((), float("nan"), is_path=True), 100, 0)]
    assert prior_mass(nan, 100, is_whole=True).masses == (1.0,)
