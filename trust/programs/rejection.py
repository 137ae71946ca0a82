"""Rejection loops: samplers written by hand, and regions that are thin."""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pyro
import pyro.distributions as pdist
from scipy import stats

from trust import exact
from trust.case import both, count

MOST = 60  # tries that answers count


def polar(y):
    """Marsaglia's polar method, a standard normal from uniform draws."""
    tries, s = 0, 2.0
    while s >= 1:
        u = numpyro.sample(f"u{tries}", dist.Uniform(-1, 1))
        v = numpyro.sample(f"v{tries}", dist.Uniform(-1, 1))
        s = u**2 + v**2
        tries += 1
    z = u * jnp.sqrt(-2 * jnp.log(s) / s)
    numpyro.sample("y", dist.Normal(z, 0.5), obs=y)


def polar_pyro(y):
    tries, s = 0, 2.0
    while s >= 1:
        u = pyro.sample(f"u{tries}", pdist.Uniform(-1, 1))
        v = pyro.sample(f"v{tries}", pdist.Uniform(-1, 1))
        s = u**2 + v**2
        tries += 1
    z = u * (-2 * s.log() / s).sqrt()
    pyro.sample("y", pdist.Normal(z, 0.5), obs=y)


POLAR = (0.8,)


def polar_answer():
    """What is accepted is standard normal, however many tries it took."""
    evidence = exact.normal(POLAR[0], 0, np.sqrt(1.25))
    return {k: (k - 1) * np.log(1 - np.pi / 4) + np.log(np.pi / 4) + evidence for k in range(1, MOST)}


EDGE = 0.7


def interval(y):
    """A normal draw, again and again until it is near zero: what is rejected lies on two sides."""
    tries = 0
    while True:
        x = numpyro.sample(f"x{tries}", dist.Normal(0, 1))
        tries += 1
        if abs(x) < EDGE:
            break
    numpyro.sample("y", dist.Normal(x, 0.5), obs=y)


def interval_pyro(y):
    tries = 0
    while True:
        x = pyro.sample(f"x{tries}", pdist.Normal(0, 1))
        tries += 1
        if abs(x) < EDGE:
            break
    pyro.sample("y", pdist.Normal(x, 0.5), obs=y)


INTERVAL = (0.9,)


def interval_answer():
    accepted = stats.norm.cdf(EDGE) - stats.norm.cdf(-EDGE)
    evidence = exact.log_integral(
        lambda x: stats.norm.logpdf(x) + stats.norm.logpdf(INTERVAL[0], x, 0.5), -EDGE, EDGE, panels=10
    )
    return {k: (k - 1) * np.log(1 - accepted) + evidence for k in range(1, MOST)}


def thin_band(y):
    """A path whose region is a thin band across two sites."""
    a = numpyro.sample("a", dist.Normal(0, 1))
    b = numpyro.sample("b", dist.Normal(0, 1))
    if abs(a - b) < 0.05:
        z = numpyro.sample("close", dist.Normal(2, 1))
    else:
        z = numpyro.sample("apart", dist.Normal(-2, 1))
    numpyro.sample("y", dist.Normal(z, 1), obs=y)


def thin_band_pyro(y):
    a = pyro.sample("a", pdist.Normal(0, 1))
    b = pyro.sample("b", pdist.Normal(0, 1))
    if abs(a - b) < 0.05:
        z = pyro.sample("close", pdist.Normal(2, 1))
    else:
        z = pyro.sample("apart", pdist.Normal(-2, 1))
    pyro.sample("y", pdist.Normal(z, 1), obs=y)


BAND = (1.8,)


def thin_band_answer():
    inside = 2 * stats.norm.cdf(0.05 / np.sqrt(2)) - 1
    return {
        "close": np.log(inside) + exact.normal(BAND[0], 2, np.sqrt(2)),
        "apart": np.log(1 - inside) + exact.normal(BAND[0], -2, np.sqrt(2)),
    }


FAMILY = {"family": "rejection"}
CASES = [
    *both(polar, polar_pyro, args=POLAR, key=count("u"), answer=polar_answer, method="analytic", **FAMILY),
    *both(
        interval,
        interval_pyro,
        args=INTERVAL,
        key=count("x"),
        answer=interval_answer,
        method="quadrature",
        **FAMILY,
    ),
    *both(
        thin_band,
        thin_band_pyro,
        args=BAND,
        key=lambda path: path.addresses[-1],
        answer=thin_band_answer,
        method="analytic",
        **FAMILY,
    ),
]
