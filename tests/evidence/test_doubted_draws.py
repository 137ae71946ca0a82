"""Draws of a path whose evidence is in doubt are of the posterior all the same, if anything knows it."""

import numpy as np
import numpyro
import numpyro.distributions as dist
import optax
import pyro
import pytest
import torch

import pathmix

NOISE = 0.3


def collinear(count):
    """Data of predictors that two numbers tell almost all of."""
    random = np.random.default_rng(0)
    x = random.normal(size=(60, 2)) @ random.normal(size=(2, count)) + 0.05 * random.normal(size=(60, count))
    return x, x @ random.normal(size=count) * 0.3 + NOISE * random.normal(size=60)


def numpyro_regression(x, y):
    b = numpyro.sample("b", dist.Normal(0, 1).expand([x.shape[1]]).to_event(1))
    numpyro.sample("y", dist.Normal(x @ b, NOISE), obs=y)


def pyro_regression(x, y):
    b = pyro.sample("b", pyro.distributions.Normal(0, 1).expand([x.shape[1]]).to_event(1))
    pyro.sample("y", pyro.distributions.Normal(x @ b, NOISE).to_event(1), obs=y)


@pytest.mark.parametrize(
    ("model", "count", "steps"),
    [(numpyro_regression, 7, 100), (numpyro_regression, 9, 300), (pyro_regression, 7, 300)],
)
def test_a_guide_that_falls_short_is_not_drawn_from(model, count, steps):
    x, y = collinear(count)
    precision = np.eye(count) + x.T @ x / NOISE**2
    covariance = np.linalg.inv(precision)
    mean, deviation = covariance @ x.T @ y / NOISE**2, np.sqrt(np.diag(covariance))
    data = (x, y) if model is numpyro_regression else (torch.tensor(x), torch.tensor(y))
    posterior = pathmix.SDVI(
        model,
        allocation=pathmix.Uniform(steps),
        optimizer=optax.chain(optax.clip_by_global_norm(10.0), optax.adam(0.05)),
        particles=4,
        starts=1,
        evidence_draws=6_000,  # not enough for a second opinion
        smc_evaluations=0,
    ).run(0, *data)
    (path,) = posterior.paths
    assert path.doubts and path.log_evidence - path.elbo > 1  # what draws of the guide would show
    draws = posterior.sample(1, 2_000)["b"]
    assert np.max(np.abs(draws.mean(axis=0) - mean) / deviation) < 0.25
    assert np.allclose(draws.std(axis=0), deviation, rtol=0.15)
