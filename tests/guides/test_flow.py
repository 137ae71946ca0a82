"""The flow guide: its density is that of its draws, and it bends where posteriors do."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy import stats

import pathmix
from pathmix import Flow, Guide
from pathmix.errors import OptionError
from pathmix.guides import flow as module
from tests import exact


def bent_params(guide, dim, size=0.5):
    """A flow that is far from the identity."""
    generator = np.random.default_rng(dim)
    params = guide.init(generator.normal(size=(500, dim)) * 2 + 1)
    return jax.tree.map(lambda leaf: leaf + size * generator.normal(size=np.shape(leaf)), params)


def densities(guide, params, noise):
    """Of draws: what the guide says, and what the change of variables does."""

    def both(z):
        u, jacobian = guide.sample(params, z), jax.jacobian(lambda n: guide.sample(params, n))(z)
        changed = jnp.sum(jax.scipy.stats.norm.logpdf(z)) - jnp.linalg.slogdet(jacobian)[1]
        return guide.log_prob(params, u), changed

    return map(np.asarray, jax.jit(jax.vmap(both))(jnp.asarray(noise)))


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("dim", [1, 2, 3, 6])
def test_log_prob_is_the_density_of_the_samples(dim):
    guide = Flow()
    params = bent_params(guide, dim)
    noise = np.random.default_rng(0).normal(size=(20, dim))
    found, expected = densities(guide, params, noise)
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.usefixtures("engine")
def test_it_starts_near_the_moments_of_the_draws():
    draws = np.random.default_rng(0).multivariate_normal([1.0, -2.0], [[1.0, 0.8], [0.8, 2.0]], size=4_000)
    guide = Flow()
    params = guide.init(draws)
    noise = np.random.default_rng(1).normal(size=(20_000, 2))
    samples = jax.vmap(lambda z: guide.sample(params, z))(noise)
    np.testing.assert_allclose(samples.mean(axis=0), draws.mean(axis=0), atol=0.1)
    np.testing.assert_allclose(np.cov(samples.T), np.cov(draws.T), atol=0.15)
    assert isinstance(guide, Guide) and hash(Flow()) == hash(guide)


@pytest.mark.usefixtures("engine")
def test_a_map_that_rounding_has_closed_has_no_density():
    guide = Flow()
    params = bent_params(guide, 4, size=1.0)
    found, expected = densities(guide, params, np.random.default_rng(0).normal(size=(200, 4)))
    known = np.isfinite(found)
    assert 0.5 < np.mean(known) < 1
    np.testing.assert_allclose(found[known], expected[known], atol=0.1)  # what the guard lets pass


def banana(y):
    a = numpyro.sample("a", dist.Normal(0, 2))
    b = numpyro.sample("b", dist.Normal(0, 4))
    numpyro.sample("y", dist.Normal(b - a**2, 0.3), obs=y)


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_it_bends(precision):
    grid = np.linspace(-20, 20, 40_001)
    density = stats.norm.pdf(grid, 0, 2) * stats.norm.pdf(1.0 + grid**2, 0, np.sqrt(16.09))
    truth = np.log(np.trapezoid(density, grid))
    posterior = exact.fit(banana, 1.0, guide="flow", budget=3_000, starts=1, precision=precision)
    (path,) = posterior.paths
    assert truth - 0.25 < path.elbo < truth + 4 * path.elbo_error
    assert path.log_evidence == pytest.approx(truth, abs=4.5 * path.log_evidence_error)
    straight = exact.fit(banana, 1.0, guide="fullrank", budget=3_000, starts=1)
    assert path.elbo > straight.paths[0].elbo + 0.5


def test_without_flowjax(monkeypatch):
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    with pytest.raises(OptionError, match=r"pip install 'pathmix\[flows\]'"):
        pathmix.SDVI(banana, guide="flow")


@pytest.mark.parametrize("options", [{"layers": 0}, {"width": 2.5}, {"knots": True}, {"interval": 0}])
def test_options_are_checked(options):
    with pytest.raises(OptionError, match=f"Flow needs .*{next(iter(options))}"):
        Flow(**options)
