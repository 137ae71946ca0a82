"""Paths whose densities differ in the shape of a known term only are not computed as one."""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy import integrate, stats

from tests import exact

D = np.array([0.1, 0.4, -0.3, 0.8, 0.5, -0.6])
Y1, Y2 = np.array([2.1, 2.9, 1.2, 3.4, 2.2, 1.1]), np.array([3.3, 2.5, 3.1, 3.9, 2.7, 3.0])


def model(y1, y2):
    k = numpyro.sample("k", dist.Bernoulli(0.5))
    z, w = (numpyro.sample(name, dist.Normal(0.0, 1.0)) for name in "zw")
    if k:
        first, second = 2.0 + (D + z * D), 3.0 + w * D
    else:
        first, second = 2.0 + z * D, 3.0 + (D + w * D)
    numpyro.sample("y1", dist.Normal(first, 1.0), obs=y1)
    numpyro.sample("y2", dist.Laplace(second, 1.0), obs=y2)


def log_evidence(k):
    def integral(density):
        return integrate.quad(lambda x: np.exp(density(x)) * stats.norm.pdf(x), -8, 8)[0]

    first = integral(lambda z: stats.norm.logpdf(Y1, 2.0 + k * D + z * D).sum())
    second = integral(lambda w: stats.laplace.logpdf(Y2, 3.0 + (1 - k) * D + w * D).sum())
    return np.log(0.5 * first * second)


@pytest.mark.parametrize("threads", [1, 2])
def test_evidences(threads):
    posterior = exact.fit(model, jnp.asarray(Y1), jnp.asarray(Y2), budget=6_000, threads=threads)
    for path in posterior.paths:
        short = (
            log_evidence(int(path.pinned["k"])) - path.elbo
        )  # the guide is normal, the posterior not quite
        assert -4 * path.elbo_error < short < 0.03 + 4 * path.elbo_error
