"""Programs that are fitted by other processes, and what a fit is known by."""

import numpy as np
import numpyro
import numpyro.distributions as dist
import pyro
import pyro.distributions as pyro_dist

import pathmix

Y = np.array([1.0, 1.5, 0.7])
FEW = {"allocation": pathmix.SuccessiveHalving(2_000), "progress": False}


def walk(y):
    """Discrete and continuous branches."""
    mean = 0.0
    for i in range(int(numpyro.sample("k", dist.Categorical(np.ones(3) / 3))) + 1):
        mean = mean + numpyro.sample(f"b{i}", dist.Normal(0, 1))
    if mean < 0:
        mean = mean - numpyro.sample("z", dist.Exponential(1.0))
    numpyro.sample("y", dist.Normal(mean, 1), obs=y)


def pyro_walk(y):
    mean = pyro.sample("b", pyro_dist.Normal(0, 1))
    if mean < 0:
        mean = mean - pyro.sample("z", pyro_dist.Exponential(1.0))
    pyro.sample("y", pyro_dist.Normal(mean, 1).expand([3]).to_event(1), obs=y)


def bits(posterior):
    """All that a run decides."""
    draws = posterior.sample(0, 20)
    return (
        [(path.label, path.weight, path.log_evidence, path.elbo, path.steps) for path in posterior.paths],
        {name: np.asarray(draws[name]).tobytes() for name in draws},
    )
