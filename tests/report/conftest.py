"""A posterior with continuous sites, and one with more paths than a page shows at first."""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

import pathmix

X = np.linspace(-1, 1, 12)
Y = 0.5 + 0.9 * X + 0.1 * np.sin(37 * X)


def line(x, y=None):
    scale = numpyro.param("scale", 2.0)
    slope = 0.0
    if numpyro.sample("has_slope <b>&", dist.Bernoulli(0.5)):
        slope = numpyro.sample("slope", dist.Normal(0, scale))
    level = numpyro.sample("level", dist.Normal(0, 1))
    numpyro.sample("y", dist.Normal(level + slope * x, 0.3), obs=y)


def many(y):
    which = int(numpyro.sample("which", dist.Categorical(probs=jnp.arange(1.0, 71) / 2485)))
    numpyro.sample("y", dist.Normal(which / 10, 1), obs=y)


@pytest.fixture(scope="package")
def fitted():
    allocation = pathmix.SuccessiveHalving(budget=2_000, keep=1)
    return pathmix.SDVI(line, allocation=allocation, starts=1).run(0, X, Y)


@pytest.fixture(scope="package")
def crowded():
    return pathmix.SDVI(many).run(0, 4.2)
