"""Change points: sums and integrals over one position."""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pyro
import pyro.distributions as pdist
import torch

from trust import exact
from trust.case import both, pinned

# Yearly flow of the Nile at Aswan, 1891 to 1906, in 10^10 cubic metres.
FLOW = np.array([11, 12.1, 11.5, 12.5, 12.6, 12.2, 10.3, 11, 7.74, 8.4, 8.74, 6.94, 9.4, 8.33, 7.01, 9.16])


def nile(flow):
    """The year of the change is discrete; it moves the mean but decides nothing."""
    years = np.arange(len(flow))
    level = numpyro.sample("before", dist.Normal(9, 3))
    if numpyro.sample("changed", dist.Bernoulli(0.5)):
        year = numpyro.sample("year", dist.Categorical(probs=np.full(len(flow), 1 / len(flow))))
        level = jnp.where(years < year, level, numpyro.sample("after", dist.Normal(9, 3)))
    numpyro.sample("flow", dist.Normal(level, 2.0).expand([len(flow)]), obs=flow)


def nile_pyro(flow):
    years = torch.arange(len(flow))
    level = pyro.sample("before", pdist.Normal(9.0, 3.0))
    if pyro.sample("changed", pdist.Bernoulli(0.5)):
        year = pyro.sample("year", pdist.Categorical(torch.ones(len(flow))))
        level = torch.where(years < year, level, pyro.sample("after", pdist.Normal(9.0, 3.0)))
    with pyro.plate("years", len(flow)):
        pyro.sample("flow", pdist.Normal(level, 2.0), obs=flow)


def nile_answer():
    def part(flow):
        return exact.level(flow, 3.0, 2.0, 9.0)

    n = len(FLOW)
    logs = {year: np.log(0.5 / n) + part(FLOW[:year]) + part(FLOW[year:]) for year in range(n)}
    return {None: np.log(0.5) + part(FLOW), **logs}


MESSAGES = np.array([3, 1, 4, 2, 2, 3, 1, 2, 4, 3, 5, 3, 6, 4, 5, 3.0])


def messages(counts):
    """The rate changes at a moment in continuous time: the density jumps as the moment moves."""
    days = jnp.arange(len(counts)) + 0.5
    rate = numpyro.sample("early", dist.Gamma(2.0, 0.5)) * jnp.ones(len(counts))
    if numpyro.sample("changed", dist.Bernoulli(0.5)):
        moment = numpyro.sample("moment", dist.Uniform(0, len(counts)))
        rate = jnp.where(days < moment, rate, numpyro.sample("late", dist.Gamma(2.0, 0.5)))
    numpyro.sample("counts", dist.Poisson(rate), obs=counts)


def messages_pyro(counts):
    days = torch.arange(len(counts)) + 0.5
    rate = pyro.sample("early", pdist.Gamma(2.0, 0.5)).expand([len(counts)])
    if pyro.sample("changed", pdist.Bernoulli(0.5)):
        moment = pyro.sample("moment", pdist.Uniform(0.0, float(len(counts))))
        rate = torch.where(days < moment, rate, pyro.sample("late", pdist.Gamma(2.0, 0.5)))
    with pyro.plate("days", len(counts)):
        pyro.sample("counts", pdist.Poisson(rate), obs=counts)


def messages_answer():
    def part(counts):
        return exact.poisson_gamma(counts, 2.0, 0.5)

    n = len(MESSAGES)
    widths = [0.5, *[1.0] * (n - 1), 0.5]  # between the middles of days
    places = [np.log(width / n) + part(MESSAGES[:i]) + part(MESSAGES[i:]) for i, width in enumerate(widths)]
    return {0: np.log(0.5) + part(MESSAGES), 1: np.log(0.5) + exact.logsumexp(places)}


TIMES = np.linspace(0, 1, 12)
BENT = 0.2 + 0.3 * TIMES + 0.9 * np.maximum(TIMES - 0.6, 0) + 0.12 * np.sin(25 * TIMES)


def kink(x, y):
    """A line, or two that meet."""
    mean = numpyro.sample("intercept", dist.Normal(0, 1)) + numpyro.sample("slope", dist.Normal(0, 1)) * x
    if numpyro.sample("bent", dist.Bernoulli(0.5)):
        at = numpyro.sample("at", dist.Uniform(0, 1))
        mean = mean + numpyro.sample("bend", dist.Normal(0, 2)) * jnp.maximum(x - at, 0.0)
    numpyro.sample("y", dist.Normal(mean, 0.15), obs=y)


def kink_pyro(x, y):
    mean = pyro.sample("intercept", pdist.Normal(0, 1)) + pyro.sample("slope", pdist.Normal(0, 1)) * x
    if pyro.sample("bent", pdist.Bernoulli(0.5)):
        at = pyro.sample("at", pdist.Uniform(0, 1))
        mean = mean + pyro.sample("bend", pdist.Normal(0, 2)) * torch.clamp(x - at, min=0)
    with pyro.plate("data", len(x)):
        pyro.sample("y", pdist.Normal(mean, 0.15), obs=y)


def kink_answer():
    line = np.stack([np.ones_like(TIMES), TIMES], axis=1)

    def bent(positions):
        designs = [np.column_stack([line, np.maximum(TIMES - at, 0)]) for at in positions]
        return np.array([exact.linear(BENT, design, [1, 1, 2], 0.15) for design in designs])

    # Panels end where the derivative jumps, at the times.
    return {
        0: np.log(0.5) + exact.linear(BENT, line, 1.0, 0.15),
        1: np.log(0.5) + exact.log_integral(bent, 0, 1, panels=len(TIMES) - 1),
    }


CASES = [
    *both(
        nile,
        nile_pyro,
        family="change points",
        args=(FLOW,),
        key=pinned("year"),
        answer=nile_answer,
        method="analytic",
    ),
    *both(
        messages,
        messages_pyro,
        family="change points",
        args=(MESSAGES,),
        key=pinned("changed"),
        answer=messages_answer,
        method="analytic",
    ),
    *both(
        kink,
        kink_pyro,
        family="change points",
        args=(TIMES, BENT),
        key=pinned("bent"),
        answer=kink_answer,
        method="quadrature",
    ),
]
