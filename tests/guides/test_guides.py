"""Properties of every guide."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from scipy import stats

from pathmix import FullRank, Guide, LowRank, MeanField
from pathmix.errors import OptionError

GUIDES = [MeanField(), FullRank(), LowRank(), LowRank(rank=1)]
COVARIANCE = np.array([[1.0, 0.8, 0.0], [0.8, 2.0, -0.3], [0.0, -0.3, 0.5]])
MEAN = np.array([1.0, -2.0, 0.5])


def prior_draws(count=4_000):
    return np.random.default_rng(0).multivariate_normal(MEAN, COVARIANCE, size=count)


pytestmark = pytest.mark.usefixtures("engine")


@pytest.mark.parametrize("guide", GUIDES)
def test_members_follow_the_protocol(guide):
    assert isinstance(guide, Guide)
    assert hash(guide) == hash(type(guide)(**vars(guide)))


@pytest.mark.parametrize("guide", GUIDES)
def test_initialisation_matches_moments(guide):
    """Forward KL for normals is moment matching: means, and the variances at least, are exact."""
    draws = prior_draws()
    params = guide.init(draws)
    noise = jax.random.normal(jax.random.key(0), (20_000, guide.noise_size(3)))
    samples = np.asarray(jax.vmap(lambda n: guide.sample(params, n))(noise))
    np.testing.assert_allclose(samples.mean(axis=0), draws.mean(axis=0), atol=0.05)
    np.testing.assert_allclose(samples.var(axis=0), draws.var(axis=0), rtol=0.05)
    if isinstance(guide, FullRank):
        np.testing.assert_allclose(np.cov(samples.T), np.cov(draws.T), atol=0.06)


@pytest.mark.parametrize("guide", GUIDES)
def test_log_prob_is_the_density_of_the_samples(guide):
    """Against SciPy's normal, with the covariance that the linear map of the noise implies."""
    params = guide.init(prior_draws(200))
    size = guide.noise_size(3)
    origin = guide.sample(params, jnp.zeros(size))
    matrix = np.asarray(jax.jacobian(lambda n: guide.sample(params, n))(jnp.zeros(size)))
    points = np.random.default_rng(1).normal(size=(20, 3)) * 2
    expected = stats.multivariate_normal.logpdf(points, origin, matrix @ matrix.T)
    found = jax.vmap(lambda u: guide.log_prob(params, u))(jnp.asarray(points))
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("guide", GUIDES)
@pytest.mark.parametrize("rows", [1, 2, 5])
def test_few_or_bad_draws_still_give_a_guide(guide, rows):
    draws = prior_draws(rows)
    draws[-1, 0] = np.inf
    params = guide.init(draws)
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(params))


@pytest.mark.parametrize(("size", "least", "most"), [(0.1, 50, 50), (1.0, 0, 50), (3.0, 0, 50), (30.0, 0, 0)])
def test_a_factor_that_rounding_has_closed_has_no_density(size, least, most):
    """The way back through a wild triangle grows like 2^dim; the noise tells what is right."""
    generator, dim, guide = np.random.default_rng(0), 60, FullRank()
    params = guide.init(generator.normal(size=(500, dim)))
    params = params._replace(below=size * np.tril(generator.normal(size=(dim, dim)), -1))
    noise = generator.normal(size=(50, dim))
    found = jax.vmap(lambda z: guide.log_prob(params, guide.sample(params, z)))(jnp.asarray(noise))
    exactly = stats.norm.logpdf(noise).sum(axis=1) - np.sum(params.log_diagonal)
    known = np.isfinite(found)
    np.testing.assert_allclose(found[known], exactly[known], atol=0.1)
    assert least <= np.sum(known) <= most


@pytest.mark.parametrize(("thinner", "least", "most"), [(0, 9, 9), (20, 9, 9), (28, 0, 9), (40, 0, 0)])
def test_directions_with_little_beside_them(thinner, least, most):
    """Fifty digits tell what is right; at the thinnest, rounding moves draws by more than the thickness."""
    guide, generator = LowRank(rank=2), np.random.default_rng(0)
    params = guide.init(generator.normal(size=(500, 6)))
    thin = params._replace(log_scale=params.log_scale - thinner)
    draws = [guide.sample(thin, jnp.asarray(generator.normal(size=8))) for _ in range(9)]
    found = np.array([guide.log_prob(thin, u) for u in draws])
    exactly = np.array([_low_rank_density(thin, u) for u in draws])
    known = np.isfinite(found)
    np.testing.assert_allclose(found[known], exactly[known], atol=0.1)
    assert least <= np.sum(known) <= most


def _low_rank_density(params, u):
    with mpmath.workdps(50):
        directions = mpmath.matrix(np.asarray(params.directions).tolist())
        scales = [mpmath.exp(float(s)) for s in params.log_scale]
        covariance = directions * directions.T + mpmath.diag([scale**2 for scale in scales])
        off = mpmath.matrix(np.asarray(u).tolist()) - mpmath.matrix(np.asarray(params.loc).tolist())
        distance = (off.T * mpmath.lu_solve(covariance, off))[0]
        return float(-0.5 * (distance + mpmath.log(mpmath.det(2 * mpmath.pi * covariance))))


def test_rank_is_checked():
    with pytest.raises(OptionError, match="rank of at least 1"):
        LowRank(rank=0)
