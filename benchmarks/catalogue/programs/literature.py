"""Classics of universal probabilistic programming."""

import itertools
import math

import numpy as np
import pyro
import pyro.distributions as dist
import torch
from scipy import stats

import pathmix
from benchmarks.catalogue.entry import EVIDENCE, Entry, share


def hurricane(damage):
    """Whichever city is hit second has seen what became of the first."""
    cities = ("A", "B")
    first = pyro.sample("first", dist.Categorical(torch.tensor([0.5, 0.5])))
    order = [cities[first], cities[1 - first]]
    severe = None
    for city in order:
        if severe is None:
            prepared = 0.2
        else:
            prepared = 0.9 if severe else 0.1
        well = pyro.sample(f"preparation_{city}", dist.Bernoulli(prepared))
        severe = pyro.sample(f"damage_{city}", dist.Bernoulli(0.2 if well else 0.8), obs=damage.get(city))


def hurricane_answers():
    total = b_first = b_severe = 0.0
    for b, prep_1, hit_1, prep_2, hit_2 in itertools.product((0, 1), repeat=5):
        ready = 0.9 if hit_1 else 0.1
        p = 0.5 * (0.2 if prep_1 else 0.8) * (ready if prep_2 else 1 - ready)
        for prep, hit in ((prep_1, hit_1), (prep_2, hit_2)):
            chance = 0.2 if prep else 0.8
            p *= chance if hit else 1 - chance
        hit_a, hit_b = (hit_2, hit_1) if b else (hit_1, hit_2)
        total, b_first, b_severe = total + p * hit_a, b_first + p * hit_a * b, b_severe + p * hit_a * hit_b
    return {EVIDENCE: math.log(total), "P(B first)": b_first / total, "P(B severe)": b_severe / total}


def marsaglia(ys):
    """A mean whose prior is sampled by the polar method."""

    def normal(mean, sd):
        tries = 0
        while True:
            x = pyro.sample(f"x_{tries}", dist.Uniform(-1.0, 1.0))
            y = pyro.sample(f"y_{tries}", dist.Uniform(-1.0, 1.0))
            s = x * x + y * y
            if s < 1:
                return mean + sd * (x * torch.sqrt(-2 * torch.log(s) / s))
            tries += 1

    mu = pyro.deterministic("mu", normal(1.0, math.sqrt(5)))
    for i, y in enumerate(ys):
        pyro.sample(f"obs_{i}", dist.Normal(mu, math.sqrt(2)), obs=y)


def marsaglia_answers():
    cov = 5 * np.ones((2, 2)) + 2 * np.eye(2)
    evidence = stats.multivariate_normal(np.ones(2), cov).logpdf([4.0, 3.0])
    return {EVIDENCE: evidence, "E[mu]": (1 / 5 + 7 / 2) / (1 / 5 + 2 / 2)}


def pedestrian(seen):
    """How far from home did a walk begin that was so long when it came back."""
    start = pyro.sample("start", dist.Uniform(0.0, 3.0))
    position = start
    distance = torch.tensor(0.0)
    t = 0
    while position > 0 and distance < 10:
        step = pyro.sample(f"step_{t}", dist.Uniform(-1.0, 1.0))
        distance = distance + torch.abs(step)
        position = position + step
        t = t + 1
    pyro.sample("distance", dist.Normal(distance, 0.1), obs=seen)


def pedestrian_answers():
    rng, n = np.random.default_rng(0), 5_000_000
    start = rng.uniform(0, 3, n)
    position, distance, going = start.copy(), np.zeros(n), np.arange(n)
    while len(going):
        step = rng.uniform(-1, 1, len(going))
        position[going] += step
        distance[going] += np.abs(step)
        going = going[(position[going] > 0) & (distance[going] < 10)]
    weights = stats.norm(distance, 0.1).pdf(1.1)
    return {EVIDENCE: math.log(weights.mean()), "E[start]": weights @ start / weights.sum()}


def if_negative(y):
    """The figure of the paper on SDVI: each side of zero has a variable of its own."""
    x = pyro.sample("x", dist.Normal(0.0, 1.0))
    if x < 0:
        z = pyro.sample("z1", dist.Normal(-3.0, 1.0))
    else:
        z = pyro.sample("z2", dist.Normal(3.0, 1.0))
    pyro.sample("y", dist.Normal(x + z, 2.0), obs=y)


def if_negative_answers():
    x = np.linspace(-12, 12, 240_001)[:-1] + 5e-5
    density = stats.norm.pdf(x) * stats.norm.pdf(0.5, x + np.where(x < 0, -3, 3), math.sqrt(5)) * 1e-4
    total = density.sum()
    return {EVIDENCE: math.log(total), "P(x < 0)": density[x < 0].sum() / total, "E[x]": density @ x / total}


def monty_hall(choice, opened):
    """The host opens a door that is neither chosen nor hides the prize."""
    prize = pyro.sample("prize", dist.Categorical(torch.ones(3) / 3)).item()
    doors = [float(door not in (choice, prize)) for door in range(3)]
    pyro.sample("opened", dist.Categorical(torch.tensor(doors)), obs=opened)


def burglary():
    """Mary called: she woke up, and her telephone worked."""
    earthquake = pyro.sample("earthquake", dist.Bernoulli(0.01))
    burglar = pyro.sample("burglar", dist.Bernoulli(0.05))
    alarm = earthquake or burglar
    if earthquake:
        phone = pyro.sample("phone", dist.Bernoulli(0.6))
    else:
        phone = pyro.sample("phone", dist.Bernoulli(0.99))
    if alarm and earthquake:
        wakes = pyro.sample("wakes", dist.Bernoulli(0.8))
    elif alarm:
        wakes = pyro.sample("wakes", dist.Bernoulli(0.6))
    else:
        wakes = pyro.sample("wakes", dist.Bernoulli(0.05))
    called = wakes and phone
    pyro.sample("called", dist.Delta(called), obs=torch.tensor(1.0))


def burglary_answers():
    p = {(0, 0): 0.99 * 0.95 * 0.99 * 0.05, (0, 1): 0.99 * 0.05 * 0.99 * 0.6}
    p |= {(1, b): 0.01 * q * 0.6 * 0.8 for b, q in ((0, 0.95), (1, 0.05))}
    total = sum(p.values())
    return {EVIDENCE: math.log(total), "P(burglar)": (p[0, 1] + p[1, 1]) / total}


def tug_of_war(matches):
    """Who is strong, and who was lazy, given the winners of matches."""
    strengths = {}

    def strength(person):
        if person not in strengths:
            strengths[person] = pyro.sample(f"strength_{person}", dist.Normal(50.0, 10.0))
        return strengths[person]

    def pulling(person, match):
        lazy = pyro.sample(f"lazy_{person}_{match}", dist.Bernoulli(0.1))
        return strength(person) / 2 if lazy else strength(person)

    for match, (winners, losers) in enumerate(matches):
        ahead = sum(pulling(person, match) for person in winners)
        behind = sum(pulling(person, match) for person in losers)
        pyro.factor(f"match_{match}", 0.0 if ahead > behind else -math.inf)


def tug_of_war_answers():
    rng, n = np.random.default_rng(0), 5_000_000
    bob, mary, tom = rng.normal(50, 10, (3, n))
    lazy = np.where(rng.random((4, n)) < 0.1, 0.5, 1.0)
    kept = (bob * lazy[0] > mary * lazy[1]) & (bob * lazy[2] > tom * lazy[3])
    return {
        EVIDENCE: math.log(kept.mean()),
        "E[bob]": bob[kept].mean(),
        "P(mary lazy)": (lazy[1, kept] < 1).mean(),
    }


def trick_coin(flips):
    """A coin is fair, or else has any bias."""
    if pyro.sample("fair", dist.Bernoulli(0.8)):
        bias = 0.5
    else:
        bias = pyro.sample("bias", dist.Beta(1.0, 1.0))
    with pyro.plate("flips", len(flips)):
        pyro.sample("flip", dist.Bernoulli(bias), obs=flips)


def trick_coin_answers():
    fair, trick = 0.8 / 2**10, 0.2 * math.exp(math.lgamma(9) + math.lgamma(3) - math.lgamma(12))
    return {EVIDENCE: math.log(fair + trick), "P(fair)": fair / (fair + trick)}


def dice(total):
    """How many dice were thrown, if their sum is known."""
    n = 1 + int(pyro.sample("n", dist.Categorical(torch.ones(4) / 4)))
    pips = sum(1 + pyro.sample(f"die_{i}", dist.Categorical(torch.ones(6) / 6)) for i in range(n))
    pyro.sample("total", dist.Delta(pips), obs=total)


def dice_answers():
    ways = [1.0]
    chances = np.zeros(5)
    for n in range(1, 5):
        ways = np.convolve(ways, [0, *[1 / 6] * 6])
        chances[n] = ways[6] / 4 if len(ways) > 6 else 0.0
    return {EVIDENCE: math.log(chances.sum()), "E[n]": chances @ np.arange(5) / chances.sum()}


ENTRIES = [
    Entry(
        hurricane,
        "pyro",
        origin="Milch et al. 2005, contingent Bayesian networks",
        args=({"A": torch.tensor(1.0)},),
        against="enumeration",
        answers=hurricane_answers,
        read={
            "P(B first)": lambda draws: draws["first"],
            "P(B severe)": lambda draws: draws["damage_B"],
        },
    ),
    Entry(
        marsaglia,
        "pyro",
        origin="Anglican, Gaussian with unknown mean",
        args=(torch.tensor([4.0, 3.0]),),
        against="conjugacy",
        answers=marsaglia_answers,
        read={"E[mu]": lambda draws: draws["mu"]},
    ),
    Entry(
        pedestrian,
        "pyro",
        origin="Mak et al. 2021",
        args=(torch.tensor(1.1),),
        against="5e6 prior draws",
        answers=pedestrian_answers,
        read={"E[start]": lambda draws: draws["start"]},
        # Every number of steps is a structure, and most have little weight.
        options={"discovery": pathmix.PriorDiscovery(500), "smc_evaluations": 0, "guide": "meanfield"},
    ),
    Entry(
        if_negative,
        "pyro",
        origin="Reichelt et al. 2022",
        args=(torch.tensor(0.5),),
        against="quadrature",
        answers=if_negative_answers,
        read={"P(x < 0)": lambda draws: draws["x"] < 0, "E[x]": lambda draws: draws["x"]},
    ),
    Entry(
        monty_hall,
        "pyro",
        origin="textbooks",
        args=(0, torch.tensor(2)),
        against="by hand",
        answers=lambda: {EVIDENCE: math.log(0.5), "P(switching wins)": 2 / 3},
        read={"P(switching wins)": lambda draws: draws["prize"] == 1},
    ),
    Entry(
        burglary,
        "pyro",
        origin="Pearl 1988; Nori et al. 2014",
        against="enumeration",
        answers=burglary_answers,
        read={"P(burglar)": lambda draws: draws["burglar"]},
    ),
    Entry(
        tug_of_war,
        "pyro",
        origin="probmods.org; Gerstenberg and Goodman 2012",
        args=([(["bob"], ["mary"]), (["bob"], ["tom"])],),
        against="5e6 prior draws",
        answers=tug_of_war_answers,
        read={
            "E[bob]": lambda draws: draws["strength_bob"],
            "P(mary lazy)": lambda draws: share(draws, "lazy_mary_0", lambda lazy: lazy > 0),
        },
    ),
    Entry(
        trick_coin,
        "pyro",
        origin="probmods.org, occam's razor",
        args=(torch.tensor([1.0] * 8 + [0.0] * 2),),
        against="conjugacy",
        answers=trick_coin_answers,
        read={"P(fair)": lambda draws: draws["fair"]},
    ),
    Entry(
        dice,
        "pyro",
        origin="textbooks",
        args=(torch.tensor(6),),
        against="enumeration",
        answers=dice_answers,
        read={"E[n]": lambda draws: draws["n"] + 1},
    ),
]
