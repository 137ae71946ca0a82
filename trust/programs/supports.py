"""Sites on intervals, on the positive line and on the simplex."""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pyro
import pyro.distributions as pdist
import torch
from scipy import special, stats
from scipy.special import gammaln

from trust import exact
from trust.case import both, has, pinned

VOTES = np.array([9, 4, 7])


def votes(counts):
    """Are three answers equally likely?"""
    shares = jnp.ones(3) / 3
    if numpyro.sample("uneven", dist.Bernoulli(0.5)):
        shares = numpyro.sample("shares", dist.Dirichlet(jnp.array([2.0, 1.0, 2.0])))
    numpyro.sample("votes", dist.Multinomial(total_count=20, probs=shares), obs=counts)


def votes_pyro(counts):
    shares = torch.ones(3) / 3
    if pyro.sample("uneven", pdist.Bernoulli(0.5)):
        shares = pyro.sample("shares", pdist.Dirichlet(torch.tensor([2.0, 1.0, 2.0])))
    pyro.sample("votes", pdist.Multinomial(20, probs=shares), obs=counts)


def votes_answer():
    prior = np.array([2.0, 1.0, 2.0])
    ways = gammaln(21) - gammaln(VOTES + 1).sum()

    def constant(alpha):
        return gammaln(alpha).sum() - gammaln(alpha.sum())

    return {
        0: np.log(0.5) + ways - 20 * np.log(3),
        1: np.log(0.5) + ways + constant(prior + VOTES) - constant(prior),
    }


CURED = (5.0,)


def cured(number):
    """A low rate counts as it is; a higher one is diluted by an unknown factor."""
    rate = numpyro.sample("rate", dist.Uniform(0, 1))
    if rate < 0.3:
        numpyro.sample("cured", dist.Binomial(20, rate), obs=number)
    else:
        factor = numpyro.sample("factor", dist.Beta(2.0, 2.0))
        numpyro.sample("cured", dist.Binomial(20, rate * factor), obs=number)


def cured_pyro(number):
    rate = pyro.sample("rate", pdist.Uniform(0, 1))
    if rate < 0.3:
        pyro.sample("cured", pdist.Binomial(20, rate), obs=number)
    else:
        factor = pyro.sample("factor", pdist.Beta(2.0, 2.0))
        pyro.sample("cured", pdist.Binomial(20, rate * factor), obs=number)


def cured_answer():
    n, k = 20, CURED[0]
    low = np.log(special.betainc(k + 1, n - k + 1, 0.3)) + special.betaln(k + 1, n - k + 1)
    low += gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)

    def given(rates):
        return np.array(
            [
                exact.log_integral(
                    lambda factor, rate=rate: (
                        stats.beta.logpdf(factor, 2, 2) + stats.binom.logpmf(k, n, rate * factor)
                    ),
                    0,
                    1,
                    panels=4,
                )
                for rate in rates
            ]
        )

    return {False: low, True: exact.log_integral(given, 0.3, 1, panels=4)}


WAITS = np.array([0.7, 1.9, 1.2, 3.1, 0.9])


def waits(y):
    """Which distribution do waiting times have?"""
    kind = numpyro.sample("kind", dist.Categorical(probs=jnp.array([0.4, 0.3, 0.3])))
    if kind == 2:
        times = dist.LogNormal(numpyro.sample("centre", dist.Normal(0, 1)), 0.6)
    else:
        rate = numpyro.sample("rate", dist.Gamma(2.0, 2.0))
        times = dist.Exponential(rate) if kind == 0 else dist.Gamma(2.0, rate)
    numpyro.sample("y", times.expand([len(y)]), obs=y)


def waits_pyro(y):
    kind = pyro.sample("kind", pdist.Categorical(torch.tensor([0.4, 0.3, 0.3])))
    if kind == 2:
        times = pdist.LogNormal(pyro.sample("centre", pdist.Normal(0, 1)), 0.6)
    else:
        rate = pyro.sample("rate", pdist.Gamma(2.0, 2.0))
        times = pdist.Exponential(rate) if kind == 0 else pdist.Gamma(2.0, rate)
    with pyro.plate("waits", len(y)):
        pyro.sample("y", times, obs=y)


def waits_answer():
    n, total, logs = len(WAITS), WAITS.sum(), np.log(WAITS).sum()

    def gamma(shape):
        """Of waiting times Gamma(shape, rate), with a Gamma(2, 2) rate."""
        return (
            2 * np.log(2)
            + (shape - 1) * logs
            - n * gammaln(shape)
            + gammaln(2 + shape * n)
            - (2 + shape * n) * np.log(2 + total)
        )

    normal = exact.level(np.log(WAITS), 1.0, 0.6) - logs
    return {0: np.log(0.4) + gamma(1), 1: np.log(0.3) + gamma(2), 2: np.log(0.3) + normal}


TANKS = np.array([3.1, 7.4, 5.2, 8.8])


def tanks(y):
    """The data bound the latent end of their range from below."""
    if numpyro.sample("bounded", dist.Bernoulli(0.5)):
        top = numpyro.sample("top", dist.Pareto(1.0, 1.0))
        numpyro.sample("y", dist.Uniform(0.0, top).expand([len(y)]), obs=y)
    else:
        rate = numpyro.sample("rate", dist.Exponential(1.0))
        numpyro.sample("y", dist.Exponential(rate).expand([len(y)]), obs=y)


def tanks_pyro(y):
    bounded = pyro.sample("bounded", pdist.Bernoulli(0.5))
    if bounded:
        top = pyro.sample("top", pdist.Pareto(1.0, 1.0))
    else:
        rate = pyro.sample("rate", pdist.Exponential(1.0))
    with pyro.plate("tanks", len(y)):
        pyro.sample("y", pdist.Uniform(0.0, top) if bounded else pdist.Exponential(rate), obs=y)


def tanks_answer():
    n, largest = len(TANKS), TANKS.max()
    return {
        1: np.log(0.5) - np.log(n + 1) - (n + 1) * np.log(largest),
        0: np.log(0.5) + gammaln(n + 1) - (n + 1) * np.log(1 + TANKS.sum()),
    }


FAMILY = {"family": "supports", "method": "analytic"}
CASES = [
    *both(votes, votes_pyro, args=(VOTES,), key=pinned("uneven"), answer=votes_answer, **FAMILY),
    *both(
        cured,
        cured_pyro,
        family="supports",
        args=CURED,
        key=has("factor"),
        answer=cured_answer,
        method="quadrature",
    ),
    *both(waits, waits_pyro, args=(WAITS,), key=pinned("kind"), answer=waits_answer, **FAMILY),
    *both(tanks, tanks_pyro, args=(TANKS,), key=pinned("bounded"), answer=tanks_answer, **FAMILY),
]
