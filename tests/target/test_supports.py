"""Every support of NumPyro's continuous distributions."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

from pathmix.discovery import PriorDiscovery
from pathmix.errors import UnsupportedSiteError
from pathmix.frontends.recognise import bind
from pathmix.program.seeds import Seed
from tests.paths import discover, target_of

DISTRIBUTIONS = {
    "real": dist.Normal(0, 1),
    "real vector": dist.MultivariateNormal(jnp.zeros(3), jnp.eye(3)),
    "batch": dist.Normal(0, 1).expand([2, 3]),
    "event": dist.Gamma(2.0, 1.0).expand([4]).to_event(1),
    "positive": dist.LogNormal(0, 1),
    "interval": dist.Uniform(-1, 3),
    "unit interval": dist.Beta(2, 2),
    "circular": dist.VonMises(0.0, 2.0),
    "greater than": dist.Pareto(2.0, 3.0),
    "less than": dist.RightTruncatedDistribution(dist.Normal(0, 1), 1.0),
    "two-sided": dist.TruncatedNormal(0, 1, low=-1, high=2),
    "simplex": dist.Dirichlet(jnp.ones(3)),
    "batched simplex": dist.Dirichlet(jnp.ones(3)).expand([2]),
    "ordered": dist.TransformedDistribution(
        dist.Normal(0, 1).expand([3]).to_event(1), dist.transforms.OrderedTransform()
    ),
    "correlation": dist.LKJ(3, 1.0),
    "correlation factor": dist.LKJCholesky(3, 1.0),
    "covariance": dist.Wishart(5.0, jnp.eye(3)),
    "covariance factor": dist.WishartCholesky(5.0, jnp.eye(3)),
    "zero sum": dist.ZeroSumNormal(1.0, (4,)),
    "improper scale": dist.HalfCauchy(1.0),
}


def _independent(x):
    """The numbers in a value that are free: the lower triangle of a matrix."""
    if x.ndim == 2 and x.shape[0] == x.shape[1]:
        return x[np.tril_indices(len(x))]
    return x.ravel()


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_bijections_round_trip_and_keep_densities(name):
    prior = DISTRIBUTIONS[name]

    def model():
        numpyro.sample("x", prior)

    (path,) = discover(model, samples=16).paths
    target = target_of(path)
    x = jnp.asarray(path.draws["x"])
    u = jax.vmap(lambda row: target.formula.unconstrain([row], target.arguments))(x)
    assert u.shape == (16, target.dim) and np.all(np.isfinite(u))
    back = jax.vmap(lambda row: target.outcome(row, target.arguments, target.site_graph.consts).free[0])(u)
    np.testing.assert_allclose(back, x, rtol=1e-5, atol=1e-6)
    density = jax.vmap(lambda row: target.formula.density(row, target.arguments))(u)
    with numpyro.validation_enabled(False):
        expected = prior.log_prob(back).reshape(16, -1).sum(axis=1)
    np.testing.assert_allclose(density.log_prior, expected, rtol=1e-6, atol=1e-6)
    if name not in ("simplex", "batched simplex", "correlation", "correlation factor", "zero sum"):
        # As many numbers out as in: the log-determinant is that of the Jacobian.
        free = jax.vmap(
            jax.jacobian(
                lambda row: _independent(
                    target.outcome(row, target.arguments, target.site_graph.consts).free[0]
                )
            )
        )
        _, expected_det = np.linalg.slogdet(free(u))
        np.testing.assert_allclose(density.log_det, expected_det, rtol=1e-6, atol=1e-6)
    gradient = jax.vmap(jax.grad(lambda row: sum(target.formula.density(row, target.arguments)[:3])))(u)
    assert np.all(np.isfinite(gradient))


@pytest.mark.usefixtures("engine")
def test_a_support_without_a_bijection():
    def model():
        numpyro.sample("direction", dist.ProjectedNormal(jnp.ones(3)))

    with pytest.raises(UnsupportedSiteError, match=r"direction.*test_supports"):
        PriorDiscovery(4).discover(bind(model), Seed.of(0), lambda slp, draws: None)
