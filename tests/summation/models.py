"""Programs with discrete sites that decide nothing, in both libraries, and their log-evidences."""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as npd
import pyro
import pyro.distributions as pyd
import torch
from scipy import stats
from scipy.special import logsumexp

STEPS, STATES = 20, 3
_RANDOM = np.random.default_rng(0)
FIRST = _RANDOM.dirichlet(np.ones(STATES))
NEXT = _RANDOM.dirichlet(np.ones(STATES), size=STATES)
LEVELS = np.array([-1.0, 0.0, 2.0])
SERIES = _RANDOM.normal(size=STEPS)


def numpyro_chain(y):
    z = numpyro.sample("z_0", npd.Categorical(probs=jnp.asarray(FIRST)))
    numpyro.sample("y_0", npd.Normal(jnp.asarray(LEVELS)[z], 1.0), obs=y[0])
    for t in range(1, len(y)):
        z = numpyro.sample(f"z_{t}", npd.Categorical(probs=jnp.asarray(NEXT)[z]))
        numpyro.sample(f"y_{t}", npd.Normal(jnp.asarray(LEVELS)[z], 1.0), obs=y[t])


def pyro_chain(y):
    first, following, levels = map(torch.as_tensor, (FIRST, NEXT, LEVELS))
    z = pyro.sample("z_0", pyd.Categorical(first))
    pyro.sample("y_0", pyd.Normal(levels[z], 1.0), obs=y[0])
    for t in range(1, len(y)):
        z = pyro.sample(f"z_{t}", pyd.Categorical(following[z]))
        pyro.sample(f"y_{t}", pyd.Normal(levels[z], 1.0), obs=y[t])


def forward(y, levels=LEVELS):
    """The forward algorithm."""
    logs = np.log(FIRST) + stats.norm.logpdf(y[0], levels, 1)
    for value in y[1:]:
        logs = logsumexp(logs[:, None] + np.log(NEXT), axis=0) + stats.norm.logpdf(value, levels, 1)
    return float(logsumexp(logs))


def marginals(y):
    """Of the states, by the forward-backward algorithm."""
    emitted = stats.norm.logpdf(np.asarray(y)[:, None], LEVELS, 1)
    ahead, back = np.zeros((len(y), STATES)), np.zeros((len(y), STATES))
    ahead[0] = np.log(FIRST) + emitted[0]
    for t in range(1, len(y)):
        ahead[t] = logsumexp(ahead[t - 1][:, None] + np.log(NEXT), axis=0) + emitted[t]
    for t in range(len(y) - 2, -1, -1):
        back[t] = logsumexp(np.log(NEXT) + emitted[t + 1] + back[t + 1], axis=1)
    logs = ahead + back
    return np.exp(logs - logsumexp(logs, axis=1, keepdims=True))


SIZES = np.array([0.3, 0.5, 0.2])
POINTS = np.concatenate([_RANDOM.normal(m, 0.4, 8) for m in (-2.0, 0.5, 2.5)])


def numpyro_mixture(y):
    means = numpyro.sample("means", npd.Normal(0.0, 2.0).expand([3]))
    scale = numpyro.sample("scale", npd.HalfNormal(1.0))
    with numpyro.plate("rows", len(y)):
        z = numpyro.sample("z", npd.Categorical(probs=jnp.asarray(SIZES)))
        numpyro.sample("y", npd.Normal(means[z], scale), obs=y)


def pyro_mixture(y):
    means = pyro.sample("means", pyd.Normal(0.0, 2.0).expand([3]).to_event(1))
    scale = pyro.sample("scale", pyd.HalfNormal(1.0))
    with pyro.plate("rows", len(y)):
        z = pyro.sample("z", pyd.Categorical(torch.as_tensor(SIZES)))
        pyro.sample("y", pyd.Normal(means[z], scale), obs=y)


def numpyro_factorial(y):
    """Two chains, of which only the sum is seen."""
    a = b = 0
    for t in range(len(y)):
        a = numpyro.sample(f"a_{t}", npd.Categorical(probs=jnp.asarray(NEXT)[a]))
        b = numpyro.sample(f"b_{t}", npd.Bernoulli(jnp.where(b == 1, 0.8, 0.3)))
        numpyro.sample(f"y_{t}", npd.Normal(jnp.asarray(LEVELS)[a] + 1.5 * b, 1.0), obs=y[t])


def pyro_factorial(y):
    following, levels = map(torch.as_tensor, (NEXT, LEVELS))
    a, b = torch.tensor(0), torch.tensor(0.0)
    for t in range(len(y)):
        a = pyro.sample(f"a_{t}", pyd.Categorical(following[a]))
        b = pyro.sample(f"b_{t}", pyd.Bernoulli(torch.where(b == 1, 0.8, 0.3)))
        pyro.sample(f"y_{t}", pyd.Normal(levels[a] + 1.5 * b, 1.0), obs=y[t])


def factorial(y):
    """The forward algorithm over pairs of states."""
    flips = np.array([[0.7, 0.3], [0.2, 0.8]])
    levels = (LEVELS[:, None] + np.array([0.0, 1.5])).ravel()
    both = np.kron(NEXT, flips)
    logs = np.log(both[0]) + stats.norm.logpdf(y[0], levels, 1)
    for value in y[1:]:
        logs = logsumexp(logs[:, None] + np.log(both), axis=0) + stats.norm.logpdf(value, levels, 1)
    return float(logsumexp(logs))


LENGTHS = np.array([0.0, 0.2, 0.5, 0.3])


def numpyro_random_length(y):
    """The first states of a chain, as many as a branch says."""
    if numpyro.sample("short", npd.Bernoulli(0.4)):
        numpyro.sample("y", npd.Normal(0.0, 2.0).expand([len(y)]).to_event(1), obs=y)
        return
    length = 4 * int(numpyro.sample("length", npd.Categorical(probs=jnp.asarray(LENGTHS))))
    numpyro_chain(y[:length])
    numpyro.sample("rest", npd.Normal(0.0, 2.0).expand([len(y) - length]).to_event(1), obs=y[length:])


def pyro_random_length(y):
    if pyro.sample("short", pyd.Bernoulli(0.4)):
        pyro.sample("y", pyd.Normal(0.0, 2.0).expand([len(y)]).to_event(1), obs=y)
        return
    length = 4 * int(pyro.sample("length", pyd.Categorical(torch.as_tensor(LENGTHS))))
    pyro_chain(y[:length])
    pyro.sample("rest", pyd.Normal(0.0, 2.0).expand([len(y) - length]).to_event(1), obs=y[length:])


def random_length(y):
    """log Z of the short way, and of each length."""
    logs = [np.log(0.4) + stats.norm.logpdf(y, 0, 2).sum()]
    for part in (1, 2, 3):
        rest = stats.norm.logpdf(y[4 * part :], 0, 2).sum()
        logs.append(np.log(0.6 * LENGTHS[part]) + forward(y[: 4 * part]) + rest)
    return np.array(logs)


COUNTED = np.array([[2, 3, 1], [0, 1, 0], [4, 4, 6], [1, 0, 1]])


def numpyro_counts(y):
    """How many animals there are at each place, of which some are seen at each visit."""
    seen = numpyro.sample("seen", npd.Beta(2.0, 2.0))
    with numpyro.plate("places", len(y)):
        there = numpyro.sample("there", npd.Poisson(4.0))
        for visit in range(y.shape[1]):
            numpyro.sample(f"y_{visit}", npd.Binomial(there, seen), obs=y[:, visit])


def pyro_counts(y):
    seen = pyro.sample("seen", pyd.Beta(2.0, 2.0))
    with pyro.plate("places", len(y)):
        there = pyro.sample("there", pyd.Poisson(4.0))
        for visit in range(y.shape[1]):
            pyro.sample(f"y_{visit}", pyd.Binomial(there, seen), obs=y[:, visit].double())


def counts(y, seen):
    """log p(y | seen)."""
    there = np.arange(200)
    logs = stats.poisson.logpmf(there, 4.0)[:, None] + stats.binom.logpmf(
        y[None], there[:, None, None], seen
    ).sum(axis=-1)
    return float(logsumexp(logs, axis=0).sum())
