"""Programs that write into their arguments: every run has them as they were given, and so has the user."""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pyro
import pyro.distributions as pyro_dist
import pytest
import torch
from scipy import stats

import pathmix

X, Y = np.array([10.0, 20.0, 30.0, 40.0]), np.array([1.2, 0.7, 2.0, 1.6])


def in_numpyro(x, y):
    x /= 10
    linear = numpyro.sample("linear", dist.Bernoulli(0.5))
    a = numpyro.sample("a", dist.Normal(0.0, 1.0))
    numpyro.sample("y", dist.Normal(a * x if linear else a * jnp.ones(4), 0.5), obs=y)


def in_pyro(x, y):
    x /= 10
    linear = pyro.sample("linear", pyro_dist.Bernoulli(0.5))
    a = pyro.sample("a", pyro_dist.Normal(0.0, 1.0))
    mean = a * torch.as_tensor(x) if linear else a * torch.ones(4)
    pyro.sample("y", pyro_dist.Normal(mean, 0.5).to_event(1), obs=torch.as_tensor(y))


@pytest.mark.parametrize(
    ("model", "array"), [(in_numpyro, np.array), (in_pyro, np.array), (in_pyro, torch.tensor)]
)
def test_they_do_it_once(model, array):
    x, y = array(X), array(Y)
    posterior = pathmix.SDVI(model, progress=False).run(0, x, y)
    exact = {
        linear: stats.multivariate_normal(np.zeros(4), 0.25 * np.eye(4) + np.outer(row, row)).logpdf(Y)
        for linear, row in ((0, np.ones(4)), (1, X / 10))
    }
    found = {int(path.pinned["linear"]): path.log_evidence for path in posterior.paths}
    assert found == pytest.approx({k: value + np.log(0.5) for k, value in exact.items()}, abs=0.02)
    assert np.array_equal(x, X)


def test_a_write_that_pytorch_cannot_follow():
    def model(y):
        s = pyro.sample("s", pyro_dist.LogNormal(0.0, 0.5))
        covariance = (s * torch.eye(3)).T
        covariance.as_strided((3,), (4,)).add_(0.1)
        pyro.sample("y", pyro_dist.MultivariateNormal(torch.zeros(3), covariance), obs=y)

    with pytest.raises(pathmix.PathmixError, match=r"cannot follow \(torch.as_strided\)"):
        pathmix.SDVI(model, progress=False).run(0, torch.tensor([0.3, 1.2, 0.1]))
