"""Finding paths from the prior."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy import stats

import pathmix
from pathmix.discovery import PriorDiscovery
from pathmix.frontends.recognise import bind
from pathmix.program.seeds import Seed
from tests import exact
from tests.paths import discover
from tests.zoo import programs


def test_prior_masses():
    found = discover(programs.ten_branches, 2.0, samples=4_000)
    edges = np.array([-np.inf, *range(-4, 5), np.inf])
    truth = np.diff(stats.norm.cdf(edges / 5))
    masses = sorted(path.prior_mass for path in found.paths)
    # Ten multinomial shares at 4.5 standard errors: false failures below 7e-5.
    np.testing.assert_allclose(masses, np.sort(truth), atol=4.5 * np.sqrt(0.21 * 0.79 / 4_000))


def test_slow_runs_grow_with_paths_not_with_samples():
    calls = []

    def counted(y):
        calls.append(1)
        programs.ten_branches(y)

    runs = {}
    for samples in (2_000, 20_000):
        calls.clear()
        found = discover(counted, 2.0, samples=samples)
        assert len(found.paths) == 10
        runs[samples] = len(calls)
    assert runs[20_000] <= runs[2_000] < 150


def test_a_cap_on_paths_is_reported():
    def model():
        k = numpyro.sample("k", dist.Categorical(probs=jnp.ones(8) / 8))
        numpyro.sample("x", dist.Normal(int(k), 1))

    with pytest.warns(pathmix.PathmixWarning, match=r"% of the prior runs follow paths beyond max_paths=3"):
        most = PriorDiscovery(800, max_paths=3)
        posterior = exact.fit(model, budget=100, weights="elbo", discovery=most)
    assert len(posterior.paths) == 3
    assert sum(path.prior_mass for path in posterior.paths) == pytest.approx(3 / 8)
    assert posterior.discovery.dropped_mass == pytest.approx(5 / 8, abs=0.08)
    assert "cut off by max_paths" in str(posterior)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        discover(model, samples=200, max_paths=8)


def test_draws_follow_the_prior_of_their_path():
    """Also where the probability of the branch depends on a continuous site."""

    def model():
        p = numpyro.sample("p", dist.Beta(1, 1))
        if numpyro.sample("k", dist.Bernoulli(p)):
            numpyro.sample("x", dist.Normal(0, 1))

    for path in discover(model, samples=1_000).paths:
        k = dict(path.slp.path.pinned)["k"]
        assert path.followers == len(path.draws["p"]) == round(path.prior_mass * 1_000)
        assert stats.kstest(path.draws["p"], stats.beta(1 + k, 2 - k).cdf).pvalue > 1e-4


def test_rare_paths_get_forced_draws_too():
    found = discover(programs.polynomial, programs.POLYNOMIAL_X, programs.POLYNOMIAL_Y, samples=256)
    rare = min(found.paths, key=lambda path: path.prior_mass)
    assert rare.followers < 100 == len(rare.draws["w0"])
    assert stats.kstest(rare.draws["w0"], "norm").pvalue > 1e-4


@pytest.mark.usefixtures("engine")
def test_d_min_is_the_smallest_density_of_a_prior_draw():
    runs = PriorDiscovery(1_000)
    posterior = exact.fit(programs.one_path, 0.5, budget=10, weights="elbo", discovery=runs)
    program = bind(programs.one_path, (0.5,))
    found = PriorDiscovery(1_000).discover(program, Seed.of(0).child(0), lambda slp, draws: None)
    draws = found.paths[0].draws["z"]
    assert len(draws) >= 1_000
    densities = stats.norm.logpdf(draws) + stats.norm.logpdf(0.5, draws)
    assert posterior.discovery.log_d_min == pytest.approx(densities.min(), rel=1e-9)


def test_the_order_of_paths_is_the_same_every_time():
    few = PriorDiscovery(100)
    labels = [list(exact.fit(programs.grammar, 0.7, budget=50, discovery=few).weights) for _ in range(2)]
    assert labels[0] == labels[1]


@pytest.mark.usefixtures("engine")
def test_the_last_seeds_of_a_large_batch_run_as_they_would_alone():
    def model():
        for step in range(int(numpyro.sample("k", dist.Geometric(0.4)))):
            numpyro.sample(f"x{step}", dist.Normal(0, 1))
        numpyro.sample("z", dist.Normal(0, 1))

    count = 1_500
    program = bind(model, ())
    wanted = np.arange(count) % 3 > 0
    batch_runs = list(program.frontend.explore(program, Seed.of(0), wanted))
    explained = sum((batch_run.followed & wanted).astype(int) for batch_run in batch_runs)
    np.testing.assert_array_equal(explained, wanted)
    for batch_run in batch_runs:
        assert np.all(batch_run.inside[batch_run.followed])
        row = int(np.argmax(batch_run.followed & wanted))
        (alone,) = program.frontend.explore(program, Seed.of(0), np.arange(count) == row)
        assert alone.path == batch_run.path
        for name, values in batch_run.values.items():
            np.testing.assert_array_equal(values[row], alone.values[name][row])
    assert len(batch_runs) > 8


@dataclass(frozen=True)
class Changed:
    """A discovery that tells what the usual one found in its own way."""

    change: Callable
    announces: bool = True
    usual: PriorDiscovery = PriorDiscovery(200)

    @property
    def limits(self):
        return self.usual.limits

    def discover(self, program, seed, on_path):
        found = self.usual.discover(program, seed, on_path if self.announces else lambda slp, draws: None)
        return replace(found, paths=tuple(self.change(found.paths)))


def without_the_first(paths):
    return paths[1:]


@pytest.mark.parametrize("method", [pathmix.SDVI, pathmix.DCC])
@pytest.mark.parametrize(
    ("discovery", "count"),
    [(Changed(reversed), 3), (Changed(tuple, announces=False), 3), (Changed(without_the_first), 2)],
)
def test_a_discovery_may_return_paths_as_it_likes(method, discovery, count):
    prior = [0.2, 0.3, 0.5]

    def model(y):
        k = int(numpyro.sample("k", dist.Categorical(probs=jnp.array(prior))))
        z = numpyro.sample("z", dist.Normal(float(k), 1))
        numpyro.sample("y", dist.Normal(z, 1), obs=y)

    is_sdvi = method is pathmix.SDVI
    budget = {"allocation": pathmix.Uniform(budget=1_500)} if is_sdvi else {"iterations": 6}
    posterior = method(model, discovery=discovery, progress=False, **budget).run(0, 0.5)
    assert len(posterior.paths) == count
    draws = posterior.sample(0, 300)
    for position, path in enumerate(posterior.paths):
        k = path.pinned["k"]
        assert path.label == f"k={k}" and path.prior_mass == pytest.approx(prior[k])
        log_z = np.log(prior[k]) + stats.norm.logpdf(0.5, k, np.sqrt(2))
        assert path.log_evidence == pytest.approx(log_z, abs=0.2)
        assert np.all(draws["k"][draws.path == position] == k)
