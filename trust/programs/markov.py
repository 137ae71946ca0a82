"""Markov chains, hidden or seen."""

from itertools import pairwise, product

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pyro
import pyro.distributions as pdist
import torch
from scipy.special import betaln

from trust import exact
from trust.case import both, pinned

STAY = np.array([[0.7, 0.3], [0.4, 0.6]])
CENTRES = np.array([-1.0, 1.0])
SIGNAL = np.array([-1.2, -0.3, 0.4, 1.3, 0.2, 0.1])


def hidden(y):
    """Discrete sites only: every sequence of states is a path."""
    transition, centres = jnp.array(STAY), jnp.array(CENTRES)
    state = 0
    for t in range(len(y)):
        state = numpyro.sample(f"state{t}", dist.Categorical(probs=transition[state]))
        numpyro.sample(f"y{t}", dist.Normal(centres[state], 1.0), obs=y[t])


def hidden_pyro(y):
    transition, centres = torch.tensor(STAY), torch.tensor(CENTRES)
    state = 0
    for t in pyro.markov(range(len(y))):
        state = pyro.sample(f"state{t}", pdist.Categorical(transition[state]))
        pyro.sample(f"y{t}", pdist.Normal(centres[state], 1.0), obs=y[t])


def hidden_answer():
    logs = {}
    for states in product((0, 1), repeat=len(SIGNAL)):
        moves = sum(np.log(STAY[a, b]) for a, b in pairwise((0, *states)))
        logs[states] = moves + exact.normal(SIGNAL, CENTRES[list(states)])
    return logs


SHORT = SIGNAL[:5]


def sticky(y):
    """A hidden chain that stays with a probability that is unknown, and has levels that are."""
    stay = numpyro.sample("stay", dist.Beta(3.0, 1.5))
    low, high = numpyro.sample("low", dist.Normal(-1, 0.5)), numpyro.sample("high", dist.Normal(1, 0.5))
    state = 0
    for t in range(len(y)):
        state = numpyro.sample(f"state{t}", dist.Bernoulli(jnp.where(state == 1, stay, 1 - stay)))
        numpyro.sample(f"y{t}", dist.Normal(jnp.where(state == 1, high, low), 0.7), obs=y[t])


def sticky_pyro(y):
    stay = pyro.sample("stay", pdist.Beta(3.0, 1.5))
    low, high = pyro.sample("low", pdist.Normal(-1, 0.5)), pyro.sample("high", pdist.Normal(1, 0.5))
    state = torch.zeros(())
    for t in range(len(y)):
        state = pyro.sample(f"state{t}", pdist.Bernoulli(torch.where(state == 1, stay, 1 - stay)))
        pyro.sample(f"y{t}", pdist.Normal(torch.where(state == 1, high, low), 0.7), obs=y[t])


def sticky_answer():
    logs = {}
    for states in product((0, 1), repeat=len(SHORT)):
        stays = sum(a == b for a, b in pairwise((0, *states)))
        chain = betaln(3 + stays, 1.5 + len(states) - stays) - betaln(3, 1.5)
        chosen = np.array(states) == 1
        levels = exact.level(SHORT[~chosen], 0.5, 0.7, -1) + exact.level(SHORT[chosen], 0.5, 0.7, 1)
        logs[states] = chain + levels
    return logs


RAIN = np.array([0, 0, 0, 1, 1, 1, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 1, 0, 0, 0.0])


def order(rain):
    """Does the weather remember yesterday, or the day before too?"""
    memory = numpyro.sample("memory", dist.Categorical(probs=jnp.ones(3) / 3))
    wet = numpyro.sample("wet", dist.Beta(1.0, 1.0).expand([2 ** int(memory)]).to_event(1))
    days = rain.astype(int)
    past = sum((days[2 - lag : len(days) - lag] << (lag - 1) for lag in range(1, memory + 1)), 0 * days[2:])
    numpyro.sample("rain", dist.Bernoulli(wet[past]), obs=rain[2:])


def order_pyro(rain):
    memory = int(pyro.sample("memory", pdist.Categorical(torch.ones(3))))
    wet = pyro.sample("wet", pdist.Beta(1.0, 1.0).expand([2**memory]).to_event(1))
    days = rain.long()
    past = sum((days[2 - lag : len(days) - lag] << (lag - 1) for lag in range(1, memory + 1)), 0 * days[2:])
    with pyro.plate("days", len(rain) - 2):
        pyro.sample("rain", pdist.Bernoulli(wet[past]), obs=rain[2:])


def order_answer():
    days = RAIN.astype(int)
    logs = {}
    for memory in range(3):
        seen = {}
        for t in range(2, len(days)):
            seen.setdefault(tuple(days[t - memory : t]), []).append(days[t])
        rows = [betaln(1 + sum(row), 1 + len(row) - sum(row)) for row in seen.values()]
        logs[memory] = np.log(1 / 3) + sum(rows)
    return logs


def states(y):
    return pinned(*(f"state{t}" for t in range(len(y))))


FAMILY = {"family": "markov"}
CASES = [
    *both(
        hidden,
        hidden_pyro,
        args=(SIGNAL,),
        key=states(SIGNAL),
        answer=hidden_answer,
        method="enumeration",
        **FAMILY,
    ),
    *both(
        sticky,
        sticky_pyro,
        args=(SHORT,),
        key=states(SHORT),
        answer=sticky_answer,
        method="enumeration",
        **FAMILY,
    ),
    *both(
        order,
        order_pyro,
        args=(RAIN,),
        key=pinned("memory"),
        answer=order_answer,
        method="analytic",
        **FAMILY,
    ),
]
