"""Counts without an upper end: geometric and Poisson."""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pyro
import pyro.distributions as pdist
import torch
from scipy import stats

from trust import exact
from trust.case import both, pinned

MOST = 60  # what answers count to


def layers(y):
    """Every layer adds a normal thickness."""
    number = int(numpyro.sample("number", dist.Geometric(probs=0.4)))
    thickness = [numpyro.sample(f"layer{i}", dist.Normal(1.0, 0.5)) for i in range(number)]
    numpyro.sample("y", dist.Normal(sum(thickness), 0.5), obs=y)


def layers_pyro(y):
    number = int(pyro.sample("number", pdist.Geometric(0.4)))
    thickness = [pyro.sample(f"layer{i}", pdist.Normal(1.0, 0.5)) for i in range(number)]
    pyro.sample("y", pdist.Normal(sum(thickness, torch.zeros(())), 0.5), obs=y)


THICK = (3.2,)


def layers_answer():
    return {
        k: np.log(0.4) + k * np.log(0.6) + exact.normal(THICK[0], k, np.sqrt(0.25 * k + 0.25))
        for k in range(MOST)
    }


def sources(flux):
    """An unknown number of stars, each of a positive brightness."""
    stars = numpyro.sample("stars", dist.Poisson(2.0))
    total = 0.0
    for i in range(stars):
        total = total + numpyro.sample(f"brightness{i}", dist.Gamma(2.0, 1.0))
    numpyro.deterministic("total", total)
    numpyro.sample("flux", dist.Normal(total, 0.5), obs=flux)


def sources_pyro(flux):
    stars = pyro.sample("stars", pdist.Poisson(2.0)).long().item()
    total = torch.zeros(())
    for i in range(stars):
        total = total + pyro.sample(f"brightness{i}", pdist.Gamma(2.0, 1.0))
    pyro.deterministic("total", total)
    pyro.sample("flux", pdist.Normal(total, 0.5), obs=flux)


FLUX = (4.5,)


def sources_answer():
    """The brightness of k stars is Gamma(2 k) together."""

    def evidence(stars):
        return exact.log_integral(
            lambda total: stats.gamma.logpdf(total, 2 * stars) + stats.norm.logpdf(FLUX[0], total, 0.5), 0, 12
        )

    logs = {k: stats.poisson.logpmf(k, 2) + evidence(k) for k in range(1, 30)}
    return {0: stats.poisson.logpmf(0, 2) + exact.normal(FLUX[0], 0, 0.5), **logs}


def population(seen):
    """Discrete sites only: how many fish are there, if three were caught?"""
    fish = int(numpyro.sample("fish", dist.Poisson(6.0)))
    numpyro.sample("seen", dist.Binomial(fish, 0.4), obs=seen)


def population_pyro(seen):
    fish = int(pyro.sample("fish", pdist.Poisson(6.0)))
    pyro.sample("seen", pdist.Binomial(fish, 0.4), obs=seen)


SEEN = (3.0,)


def population_answer():
    """Fish that were not seen are Poisson too."""
    seen = stats.poisson.logpmf(SEEN[0], 0.4 * 6)
    return {3 + k: seen + stats.poisson.logpmf(k, 0.6 * 6) for k in range(MOST)}


def replicates(y):
    """Are counts more spread than Poisson? Then every one has its own rate."""
    base = numpyro.sample("base", dist.Gamma(3.0, 1.0))
    if numpyro.sample("spread", dist.Bernoulli(0.5)):
        with numpyro.plate("each", len(y)):
            rate = base * numpyro.sample("factor", dist.Gamma(2.0, 2.0))
            numpyro.sample("y", dist.Poisson(rate), obs=y)
    else:
        numpyro.sample("y", dist.Poisson(base * jnp.ones(len(y))), obs=y)


def replicates_pyro(y):
    base = pyro.sample("base", pdist.Gamma(3.0, 1.0))
    spread = pyro.sample("spread", pdist.Bernoulli(0.5))
    with pyro.plate("each", len(y)):
        rate = base * pyro.sample("factor", pdist.Gamma(2.0, 2.0)) if spread else base
        pyro.sample("y", pdist.Poisson(rate), obs=y)


COUNTS = np.array([1, 4, 2, 7, 3, 2.0])


def replicates_answer():
    """Given the base, a count with its own factor is negative binomial."""

    def spread(base):
        each = stats.nbinom.logpmf(COUNTS[:, None], 2, 2 / (2 + base)).sum(axis=0)
        return each + stats.gamma.logpdf(base, 3)

    return {
        0: np.log(0.5) + exact.poisson_gamma(COUNTS, 3.0, 1.0),
        1: np.log(0.5) + exact.log_integral(spread, 0, 60),
    }


FAMILY = {"family": "counts"}
CASES = [
    *both(
        layers,
        layers_pyro,
        args=THICK,
        key=pinned("number"),
        answer=layers_answer,
        method="analytic",
        **FAMILY,
    ),
    *both(
        sources,
        sources_pyro,
        args=FLUX,
        key=pinned("stars"),
        answer=sources_answer,
        method="quadrature",
        **FAMILY,
    ),
    *both(
        population,
        population_pyro,
        args=SEEN,
        key=pinned("fish"),
        answer=population_answer,
        method="analytic",
        **FAMILY,
    ),
    *both(
        replicates,
        replicates_pyro,
        args=(COUNTS,),
        key=pinned("spread"),
        answer=replicates_answer,
        method="quadrature",
        **FAMILY,
    ),
]
