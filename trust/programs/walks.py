"""Random walks: a loop whose length is random."""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pyro
import pyro.distributions as pdist
import torch
from scipy import stats

from trust import exact
from trust.case import both, count
from trust.long_runs import PEDESTRIAN


def pedestrian(walked):
    """Lost at most two kilometres from home, walks until home, or tired; how far is known roughly."""
    position = numpyro.sample("start", dist.Uniform(0, 2))
    distance, steps = 0.0, 0
    while (position > 0) & (distance < 2):
        move = numpyro.sample(f"move{steps}", dist.Uniform(-1, 1))
        position, distance, steps = position + move, distance + jnp.abs(move), steps + 1
    numpyro.sample("walked", dist.Normal(distance, 0.1), obs=walked)


def pedestrian_pyro(walked):
    position = pyro.sample("start", pdist.Uniform(0, 2))
    distance, steps = torch.tensor(0.0), 0
    while position > 0 and distance < 2:
        move = pyro.sample(f"move{steps}", pdist.Uniform(-1, 1))
        position, distance, steps = position + move, distance + move.abs(), steps + 1
    pyro.sample("walked", pdist.Normal(distance, 0.1), obs=walked)


def pedestrian_answer():
    return {steps: np.log(mean) for steps, (mean, _) in PEDESTRIAN.items() if mean > 0}


FENCE, MOST_STEPS = 1.5, 4


def first_passage(y):
    """Normal steps until the walk leaves the fence, or has had enough."""
    x, steps = 0.0, 0
    while abs(x) < FENCE and steps < MOST_STEPS:
        x = x + numpyro.sample(f"step{steps}", dist.Normal(0, 1))
        steps += 1
    numpyro.sample("y", dist.Normal(x, 0.5), obs=y)


def first_passage_pyro(y):
    x, steps = torch.zeros(()), 0
    while x.abs() < FENCE and steps < MOST_STEPS:
        x = x + pyro.sample(f"step{steps}", pdist.Normal(0, 1))
        steps += 1
    pyro.sample("y", pdist.Normal(x, 0.5), obs=y)


def first_passage_answer():
    """The density of the walk inside the fence, carried from step to step on Gauss-Legendre nodes."""
    nodes, widths = np.polynomial.legendre.leggauss(60)
    inside, widths = FENCE * nodes, FENCE * widths
    y, outside_edges = PASSAGE[0], ((-12, -FENCE), (FENCE, 12))
    density = stats.norm.pdf(inside)  # after one step
    reach = stats.norm.pdf
    logs = {}
    for steps in range(1, MOST_STEPS + 1):
        parts = [
            exact.log_integral(lambda x, reach=reach: np.log(reach(x)) + stats.norm.logpdf(y, x, 0.5), *edges)
            for edges in outside_edges
        ]
        if steps == MOST_STEPS:
            parts.append(np.log(np.sum(widths * density * stats.norm.pdf(y, inside, 0.5))))
        logs[steps] = exact.logsumexp(parts)
        reach = carry(inside, widths * density)
        density = reach(inside)
    return logs


def carry(starts, masses):
    return lambda x: stats.norm.pdf(x[:, None] - starts) @ masses


PASSAGE = (1.2,)


def gambler(y):
    """Discrete sites only: one unit a game, until ruined, rich, or tired."""
    money, games = 2, 0
    while 0 < money < 5 and games < 6:
        money += 1 if numpyro.sample(f"won{games}", dist.Bernoulli(0.45)) else -1
        games += 1
    numpyro.sample("y", dist.Normal(money, 1.0), obs=y)


def gambler_pyro(y):
    money, games = 2, 0
    while 0 < money < 5 and games < 6:
        money += 1 if pyro.sample(f"won{games}", pdist.Bernoulli(0.45)).item() else -1
        games += 1
    pyro.sample("y", pdist.Normal(money, 1.0), obs=y)


GAMBLED = (3.4,)


def gambler_answer():
    logs = {}

    def play(money, games, won, log_prior):
        if 0 < money < 5 and len(games) < 6:
            play(money + 1, (*games, 1), won + 1, log_prior + np.log(0.45))
            play(money - 1, (*games, 0), won, log_prior + np.log(0.55))
        else:
            logs[games] = log_prior + exact.normal(GAMBLED[0], money)

    play(2, (), 0, 0.0)
    return logs


CASES = [
    *both(
        pedestrian,
        pedestrian_pyro,
        family="walks",
        args=(1.1,),
        key=count("move"),
        answer=pedestrian_answer,
        method="long run",
    ),
    *both(
        first_passage,
        first_passage_pyro,
        family="walks",
        args=PASSAGE,
        key=count("step"),
        answer=first_passage_answer,
        method="quadrature",
    ),
    *both(
        gambler,
        gambler_pyro,
        family="walks",
        args=GAMBLED,
        key=lambda path: tuple(path.pinned.values()),
        answer=gambler_answer,
        method="enumeration",
    ),
]
