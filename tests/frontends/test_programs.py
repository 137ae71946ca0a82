"""Properties that hold for every program of the zoo, and what is peculiar to some."""

import jax
import numpy as np
import pytest
from numpyro.infer.util import log_density
from scipy import stats

import pathmix
from tests import exact
from tests.paths import discover, target_of
from tests.zoo import programs
from tests.zoo.programs import PROGRAMS, WHOLE_DATA


def discovered(model, args, samples=200):
    return discover(model, *args, samples=samples, seed=3)


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("model", PROGRAMS, ids=lambda model: model.__name__)
def test_densities_are_numpyros_own(model):
    """Along every path, at prior draws, in float64."""
    for path in discovered(model, PROGRAMS[model], 60).paths[:4]:
        target = target_of(path)
        row = {name: values[0] for name, values in path.draws.items()}
        values = target.columns(row)
        expected, _ = log_density(model, WHOLE_DATA[model], {}, row)
        assert float(target.log_joint(values, target.arguments)) == pytest.approx(
            float(expected), rel=1e-10, abs=1e-10
        )
        u = target.formula.unconstrain(values, target.arguments)
        density = target.formula.density(u, target.arguments)
        assert bool(density.inside)
        assert float(density.log_joint) == pytest.approx(float(expected), rel=1e-8, abs=1e-8)


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("model", PROGRAMS, ids=lambda model: model.__name__)
def test_paths_partition_the_prior(model):
    """Every prior run follows exactly one path, and path identities are unique."""
    found = discovered(model, PROGRAMS[model])
    assert sum(path.followers for path in found.paths) == found.samples
    # What is missing is exactly what is known to be unseen: draws of the discrete sites that come first.
    seen = sum(path.prior_mass for path in found.paths)
    assert 1 - found.unseen_bound <= seen + 1e-9 and seen <= 1 + 1e-9
    assert not found.unseen_is_exact or seen + found.unseen_mass == pytest.approx(1.0)
    digests = [path.slp.path.digest for path in found.paths]
    assert len(set(digests)) == len(digests)
    for path in found.paths:
        assert all(len(values) >= 1 for values in path.draws.values())


def test_a_branch_that_changes_no_address():
    posterior = exact.fit(programs.same_addresses, 1.0)
    assert posterior.weights.keys() == {"x < 0.5", "x >= 0.5"}
    assert posterior.address_weights == {("x", "z"): pytest.approx(1.0)}
    low = stats.norm.cdf(0.5) * stats.norm.pdf(1, -2, np.sqrt(2))
    high = stats.norm.sf(0.5) * stats.norm.pdf(1, 2, np.sqrt(2))
    assert posterior.weights["x < 0.5"] == pytest.approx(low / (low + high), abs=0.01)


def test_one_path():
    posterior = exact.fit(programs.one_path, 0.5)
    assert posterior.weights == {"always": 1.0}
    assert posterior.elbo == pytest.approx(stats.norm.logpdf(0.5, 0, np.sqrt(2)), abs=1e-3)
    assert posterior.paths[0].path.decisions == ()


def test_names_with_commas():
    posterior = exact.fit(programs.comma_names, 0.3)
    assert len(posterior.paths) == 4
    assert {path.addresses for path in posterior.paths} == {("a,b", "a", "b,a"), ("a,b", "a", "b")}
    mass = {1: 0.5 * 0.75 * stats.norm.pdf(0.3, 1, np.sqrt(2))}
    mass[-1] = (1 - 0.5 * 0.75) * stats.norm.pdf(0.3, -1, np.sqrt(2))
    expected = mass[1] / (mass[1] + mass[-1])
    assert posterior.address_weights["a,b", "a", "b,a"] == pytest.approx(expected, abs=0.01)


def test_pinned_values_one_eleven_and_eleven_one():
    posterior = exact.fit(programs.pinned_pairs, 4.0)
    pinned = {tuple(path.pinned.values()): path for path in posterior.paths}
    assert set(pinned) == {(0, 0), (0, 1), (1, 0), (1, 1)}
    assert pinned[0, 1].path.digest != pinned[1, 0].path.digest
    means = {(0, 0): 0, (0, 1): -10, (1, 0): 10, (1, 1): 0}
    logs = {key: np.log(0.25) + stats.norm.logpdf(4, mean, np.sqrt(2)) for key, mean in means.items()}
    for key, path in pinned.items():
        assert path.elbo == pytest.approx(logs[key], abs=0.02)


@pytest.mark.trust
def test_the_pedestrian_walks_home():
    posterior = exact.fit(programs.pedestrian, 1.1, budget=60_000)
    best = posterior.paths[:3]
    assert {path.addresses for path in best} >= {("start", "step_0", "step_1")}
    assert all(path.region.kind == "general" for path in best)
    draws = posterior.sample(0, 500)
    steps = np.stack([draws[f"step_{i}"] for i in range(3)])
    walked = np.nansum(np.abs(steps), axis=0)
    # The data say how far the pedestrian walked, to within 0.1.
    assert np.abs(walked - 1.1).mean() < 0.2


@pytest.mark.trust
def test_a_poisson_mixture_finds_its_clusters():
    y = programs.MIXTURE_Y
    posterior = exact.fit(programs.poisson_mixture, y, budget=80_000)
    best = posterior.paths[0]
    assert best.label == "num_clusters=1" and best.weight > 0.95  # the site is the number less one
    assert best.region.kind == "free" and best.gradient == "reparam"
    means = sorted(float(posterior.sample(0, 500)[f"mu_{k}"].mean()) for k in range(2))
    np.testing.assert_allclose(means, [-3, 2], atol=0.1)
    # One cluster is conjugate.
    one = next(path for path in posterior.paths if path.label == "num_clusters=0")
    covariance = 0.25 * np.eye(len(y)) + 25.0
    evidence = stats.poisson.logpmf(0, 1) + stats.multivariate_normal.logpdf(y, np.zeros(len(y)), covariance)
    assert one.elbo == pytest.approx(evidence, abs=0.02)
    # Two clusters, on a grid. A normal guide covers one of the two ways to name them.
    grid = np.linspace(-5, 5, 401)
    likelihood = np.log(
        (stats.norm.pdf(y, grid[:, None, None], 0.5) + stats.norm.pdf(y, grid[None, :, None], 0.5)) / 2
    ).sum(axis=-1)
    prior = stats.norm.logpdf(grid, 0, 5)
    total = exact.logsumexp(likelihood + prior[:, None] + prior[None, :]) + 2 * np.log(grid[1] - grid[0])
    assert best.elbo == pytest.approx(stats.poisson.logpmf(1, 1) + total - np.log(2), abs=0.05)


def test_a_recursive_grammar():
    posterior = exact.fit(programs.grammar, 0.7, budget=20_000)
    assert len(posterior.paths) == 5
    evidence = np.log(0.7) + stats.norm.logpdf(0.7, 0, np.sqrt(1.25))
    constant = next(path for path in posterior.paths if path.label == "e.leaf=1")
    assert constant.elbo == pytest.approx(evidence, abs=0.01)
    product = next(path for path in posterior.paths if len(path.addresses) == 5)
    assert product.addresses == ("e.leaf", "e.l.leaf", "e.l.value", "e.r.leaf", "e.r.value")
    assert product.label == "e.leaf=0, e.l.leaf=1, e.r.leaf=1"


@pytest.mark.usefixtures("engine")
def test_identities_do_not_depend_on_the_process():
    """The digest of a path is the same in a fresh interpreter with another hash seed."""
    import subprocess
    import sys

    code = (
        "from tests.frontends.test_programs import discovered; from tests.zoo import programs;"
        "from pathmix.engine.precision import engine_scope\n"
        "with engine_scope('float64'):\n"
        "    found = discovered(programs.comma_names, (0.3,))\n"
        "print(' '.join(p.slp.path.digest for p in found.paths))"
    )
    here = [p.slp.path.digest for p in discovered(programs.comma_names, (0.3,)).paths]
    out = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONHASHSEED": "77", "PATH": "", "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert out.stdout.split() == here


def test_models_of_every_kind():
    import functools

    import numpyro
    import numpyro.distributions as dist

    class Model:
        scale = 1.0

        def method(self, y):
            z = numpyro.sample("z", dist.Normal(0, self.scale))
            numpyro.sample("y", dist.Normal(z, 1), obs=y)

        __call__ = method

    def with_keywords(y, *, scale):
        z = numpyro.sample("z", dist.Normal(0, scale))
        numpyro.sample("y", dist.Normal(z, 1), obs=y)

    expected = stats.norm.logpdf(0.5, 0, np.sqrt(2))
    models = [Model(), Model().method, functools.partial(with_keywords, scale=1.0)]
    for model in models:
        posterior = exact.fit(model, 0.5, budget=2_000, weights="elbo")
        assert posterior.elbo == pytest.approx(expected, abs=0.01)
    few = pathmix.Uniform(2_000)
    keyword = pathmix.SDVI(with_keywords, allocation=few, weights="elbo").run(0, 0.5, scale=1.0)
    assert keyword.elbo == pytest.approx(expected, abs=0.01)


def test_seeds_may_be_keys():
    def fit(seed):
        return exact.fit(programs.one_path, 0.5, seed=seed, budget=200, weights="elbo")

    assert fit(3).elbo == fit(3).elbo
    for key in (jax.random.key(3), jax.random.PRNGKey(3)):
        assert np.isfinite(fit(key).elbo)
