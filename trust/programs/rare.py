"""Likely paths that the prior takes seldom, or hardly ever."""

import numpy as np
import numpyro
import numpyro.distributions as dist
import pyro
import pyro.distributions as pdist
from scipy import stats

from trust import exact
from trust.case import both, has, pinned


def sensor(y):
    """Half a percent of the prior, three quarters of the posterior."""
    if numpyro.sample("broken", dist.Bernoulli(0.005)):
        numpyro.sample("y", dist.Normal(numpyro.sample("offset", dist.Normal(0, 10)), 1), obs=y)
    else:
        numpyro.sample("y", dist.Normal(0, 1), obs=y)


def sensor_pyro(y):
    if pyro.sample("broken", pdist.Bernoulli(0.005)):
        pyro.sample("y", pdist.Normal(pyro.sample("offset", pdist.Normal(0, 10)), 1), obs=y)
    else:
        pyro.sample("y", pdist.Normal(0, 1), obs=y)


READING = (4.2,)


def sensor_answer():
    return {
        0: np.log(0.995) + exact.normal(READING[0]),
        1: np.log(0.005) + exact.normal(READING[0], 0, np.sqrt(101)),
    }


def tail(y):
    """One in ten thousand prior runs goes where the posterior is: no inference by prior runs can know."""
    x = numpyro.sample("x", dist.Normal(0, 1))
    if x > EDGE:
        level = numpyro.sample("level", dist.Normal(10, 1))
    else:
        level = 0.0
    numpyro.sample("y", dist.Normal(level, 1), obs=y)


def tail_pyro(y):
    x = pyro.sample("x", pdist.Normal(0, 1))
    level = pyro.sample("level", pdist.Normal(10, 1)) if x > EDGE else 0.0
    pyro.sample("y", pdist.Normal(level, 1), obs=y)


EDGE = 3.719  # sf(3.719) is 1.0e-4
FAR = (9.0,)


def tail_answer():
    return {
        True: stats.norm.logsf(EDGE) + exact.normal(FAR[0], 10, np.sqrt(2)),
        False: stats.norm.logcdf(EDGE) + exact.normal(FAR[0]),
    }


FAMILY = {"family": "rare", "method": "analytic"}
CASES = [
    *both(sensor, sensor_pyro, args=READING, key=pinned("broken"), answer=sensor_answer, **FAMILY),
    *both(tail, tail_pyro, args=FAR, key=has("level"), answer=tail_answer, **FAMILY),
]
