"""Paths whose evidence is known by conjugacy."""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pyro
import pyro.distributions as pdist
import torch
from scipy.special import betaln

from trust import exact
from trust.case import both, numpyro_only, pinned

FLIPS = np.array([1, 1, 0, 1, 1, 1, 0, 1, 1, 1, 0, 1, 0, 1, 1, 1, 1, 0, 1, 1.0])


def coin(flips):
    bias = 0.5
    if numpyro.sample("biased", dist.Bernoulli(0.5)):
        bias = numpyro.sample("bias", dist.Beta(1.0, 1.0))
    with numpyro.plate("flips", len(flips)):
        numpyro.sample("y", dist.Bernoulli(bias), obs=flips)


def coin_pyro(flips):
    bias = torch.tensor(0.5)
    if pyro.sample("biased", pdist.Bernoulli(0.5)):
        bias = pyro.sample("bias", pdist.Beta(1.0, 1.0))
    with pyro.plate("flips", len(flips)):
        pyro.sample("y", pdist.Bernoulli(bias), obs=flips)


def coin_answer():
    heads = np.sum(FLIPS)
    tails = len(FLIPS) - heads
    return {0: np.log(0.5) + len(FLIPS) * np.log(0.5), 1: np.log(0.5) + betaln(1 + heads, 1 + tails)}


GRID = np.linspace(-1, 1, 10)
CURVE = 0.4 - 1.1 * GRID + 0.5 * GRID**2 + 0.4 * np.cos(7 * GRID)
DEGREES = np.array([0.4, 0.3, 0.2, 0.1])


def polynomial(x, y):
    degree = numpyro.sample("degree", dist.Categorical(probs=DEGREES))
    mean = 0.0
    for power in range(degree + 1):
        mean = mean + numpyro.sample(f"w{power}", dist.Normal(0, 1)) * x**power
    numpyro.sample("y", dist.Normal(mean, 0.5), obs=y)


def polynomial_pyro(x, y):
    degree = pyro.sample("degree", pdist.Categorical(torch.tensor(DEGREES)))
    mean = torch.zeros_like(x)
    for power in range(degree + 1):
        mean += pyro.sample(f"w{power}", pdist.Normal(0, 1)) * x**power
    with pyro.plate("data", len(x)):
        pyro.sample("y", pdist.Normal(mean, 0.5), obs=y)


def polynomial_answer():
    designs = [np.vander(GRID, degree + 1, increasing=True) for degree in range(4)]
    return {k: np.log(DEGREES[k]) + exact.linear(CURVE, design, 1.0, 0.5) for k, design in enumerate(designs)}


SPREAD = np.array([0.3, -2.4, 1.9, 2.8, -0.6, -1.7])


def variance(y):
    """Is the noise known? The mean's scale follows the noise where it is not."""
    if numpyro.sample("known", dist.Bernoulli(0.6)):
        mean, noise = numpyro.sample("mean", dist.Normal(0, 2)), 1.0
    else:
        noise = jnp.sqrt(numpyro.sample("variance", dist.InverseGamma(2.0, 1.0)))
        mean = numpyro.sample("mean", dist.Normal(0, 2 * noise))
    with numpyro.plate("data", len(y)):
        numpyro.sample("y", dist.Normal(mean, noise), obs=y)


def variance_answer():
    ones = np.ones((len(SPREAD), 1))
    unknown = exact.linear_unknown_noise(SPREAD, ones, 2.0, 2.0, 1.0)
    return {1: np.log(0.6) + exact.level(SPREAD, 2.0, 1.0), 0: np.log(0.4) + unknown}


VISITS = np.array([[2, 3, 1, 4, 2], [4, 6, 3, 4, 5.0]])


def rates(visits):
    """One rate for two groups, or a rate for each."""
    groups = 2 if numpyro.sample("apart", dist.Bernoulli(0.5)) else 1
    rate = numpyro.sample("rate", dist.Gamma(2.0, 0.5).expand([groups]).to_event(1))
    numpyro.sample("visits", dist.Poisson(rate[:, None] * jnp.ones_like(visits)), obs=visits)


def rates_pyro(visits):
    groups = 2 if pyro.sample("apart", pdist.Bernoulli(0.5)) else 1
    rate = pyro.sample("rate", pdist.Gamma(2.0, 0.5).expand([groups]).to_event(1))
    means = rate[:, None] * torch.ones_like(visits)
    pyro.sample("visits", pdist.Poisson(means).to_event(2), obs=visits)


def rates_answer():
    apart = sum(exact.poisson_gamma(group, 2.0, 0.5) for group in VISITS)
    return {0: np.log(0.5) + exact.poisson_gamma(VISITS.ravel(), 2.0, 0.5), 1: np.log(0.5) + apart}


def correlated(columns=12, rows=40):
    """Predictors of which each is much like the one before."""
    generator = np.random.default_rng(3)
    x = generator.normal(size=(rows, columns))
    for j in range(1, columns):
        x[:, j] = 0.97 * x[:, j - 1] + np.sqrt(1 - 0.97**2) * x[:, j]
    return x, x[:, 0] - 0.9 * x[:, 11] + 0.5 * generator.normal(size=rows)


CORRELATED = correlated()


def twelve_predictors(x, y):
    """All of the predictors, or the first six."""
    used = 12 if numpyro.sample("all", dist.Bernoulli(0.5)) else 6
    weights = numpyro.sample("weights", dist.Normal(0, 1).expand([used]).to_event(1))
    numpyro.sample("y", dist.Normal(x[:, :used] @ weights, 0.5), obs=y)


def twelve_predictors_pyro(x, y):
    used = 12 if pyro.sample("all", pdist.Bernoulli(0.5)) else 6
    weights = pyro.sample("weights", pdist.Normal(torch.zeros(used), 1.0).to_event(1))
    with pyro.plate("rows", len(y)):
        pyro.sample("y", pdist.Normal(x[:, :used] @ weights, 0.5), obs=y)


def twelve_predictors_answer():
    x, y = CORRELATED
    return {k: np.log(0.5) + exact.linear(y, x[:, : 6 + 6 * k], 1.0, 0.5) for k in (0, 1)}


FAMILY = {"family": "conjugate", "method": "analytic"}
CASES = [
    *both(coin, coin_pyro, args=(FLIPS,), key=pinned("biased"), answer=coin_answer, **FAMILY),
    *both(
        polynomial,
        polynomial_pyro,
        args=(GRID, CURVE),
        key=pinned("degree"),
        answer=polynomial_answer,
        **FAMILY,
    ),
    *numpyro_only(variance, args=(SPREAD,), key=pinned("known"), answer=variance_answer, **FAMILY),
    *both(rates, rates_pyro, args=(VISITS,), key=pinned("apart"), answer=rates_answer, **FAMILY),
    *both(
        twelve_predictors,
        twelve_predictors_pyro,
        args=CORRELATED,
        key=pinned("all"),
        answer=twelve_predictors_answer,
        **FAMILY,
    ),
]
