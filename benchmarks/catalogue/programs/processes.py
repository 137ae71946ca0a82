"""Processes that go on for a random time."""

import math

import numpy as np
import pyro
import pyro.distributions as dist
import torch
from scipy import stats
from scipy.integrate import quad

import pathmix
from benchmarks.catalogue.entry import EVIDENCE, Entry


def birth_death(extant):
    """How fast species arise, if so many are left of the first."""
    birth = pyro.sample("birth", dist.Gamma(4.0, 4.0))
    death = 0.3

    def alive(name, time):
        wait = pyro.sample(f"wait_{name}", dist.Exponential(birth + death))
        if wait > time:
            return 1
        if pyro.sample(f"splits_{name}", dist.Bernoulli(birth / (birth + death))):
            return alive(f"{name}l", time - wait) + alive(f"{name}r", time - wait)
        return 0

    pyro.sample("extant", dist.Delta(torch.tensor(float(alive("s", 1.0)))), obs=extant)


def birth_death_answers():
    def like(birth):
        growth = math.exp(birth - 0.3)
        a, b = 0.3 * (growth - 1) / (birth * growth - 0.3), birth * (growth - 1) / (birth * growth - 0.3)
        return stats.gamma(4, scale=1 / 4).pdf(birth) * (1 - a) * (1 - b) * b

    points = {"points": [0.3], "limit": 200}
    total = quad(like, 0, 10, **points)[0]
    mean = quad(lambda birth: birth * like(birth), 0, 10, **points)[0]
    return {EVIDENCE: math.log(total), "E[birth]": mean / total}


def observed_tree(tree):
    """The rate of speciation behind a tree of which only the living are seen."""
    birth = pyro.sample("birth", dist.Gamma(4.0, 4.0))
    death = 0.5

    def dies_out(name, age):
        lived = pyro.sample(f"lived_{name}", dist.Exponential(death))
        if lived > age:
            return False
        return no_living_child(name, age, age - lived, 0)

    def no_living_child(name, old, young, i):
        age = old - pyro.sample(f"child_{name}_{i}", dist.Exponential(birth))
        if age < young:
            return True
        return dies_out(f"{name}{i}", age) and no_living_child(name, age, young, i + 1)

    def branch(name, old, young, i=0):
        age = old - pyro.sample(f"hidden_{name}_{i}", dist.Exponential(birth))
        if age < young:
            return
        if not dies_out(f"{name}_{i}", age):
            pyro.factor(f"seen_{name}_{i}", -math.inf)
            return
        pyro.factor(f"sides_{name}_{i}", math.log(2))
        branch(name, age, young, i + 1)

    def walk(name, node, old):
        pyro.factor(f"survives_{name}", -death * (old - node["age"]))
        branch(name, old, node["age"])
        if "left" in node:
            pyro.sample(f"split_{name}", dist.Exponential(birth), obs=torch.tensor(0.0))
            walk(f"{name}l", node["left"], node["age"])
            walk(f"{name}r", node["right"], node["age"])

    walk("s", tree, 1.0)


def observed_tree_answers():
    death = 0.5

    def single(birth, t):
        rate = birth - death
        return (rate / (birth - death * math.exp(-rate * t))) ** 2 * math.exp(-rate * t)

    def like(birth):
        whole = single(birth, 1.0) * birth * single(birth, 0.6)
        return stats.gamma(4, scale=1 / 4).pdf(birth) * whole

    points = {"points": [death], "limit": 200}
    total = quad(like, 1e-9, 10, **points)[0]
    mean = quad(lambda birth: birth * like(birth), 1e-9, 10, **points)[0]
    return {EVIDENCE: math.log(total), "E[birth]": mean / total}


CHILDREN = [0.3, 0.4, 0.3]


def surnames(men):
    """How many sons the first of a name had, if so many bear it three generations on."""
    generation = 1
    for g in range(3):
        generation = sum(
            pyro.sample(f"sons_{g}_{i}", dist.Categorical(torch.tensor(CHILDREN))).item()
            for i in range(generation)
        )
    pyro.sample("men", dist.Normal(float(generation), 1.0), obs=men)


def surnames_answers():
    def sons_of(size):
        total, power = np.zeros(2 * len(size) - 1), np.ones(1)
        for p in size:
            total[: len(power)] += p * power
            power = np.convolve(power, CHILDREN)
        return total

    likes = [
        size @ stats.norm(np.arange(len(size)), 1).pdf(3.0)
        for first in range(3)
        for size in [sons_of(sons_of(np.eye(3)[first]))]
    ]
    chances = np.array(CHILDREN) * likes
    return {EVIDENCE: math.log(chances.sum()), "E[sons]": chances @ np.arange(3) / chances.sum()}


WEATHER = np.array([[0.8, 0.15, 0.05], [0.3, 0.5, 0.2], [0.1, 0.4, 0.5]])


def markov_chain(last):
    """How long ago the sun shone, if it rains now."""
    transitions = torch.tensor(WEATHER)
    state = torch.tensor(0)
    days = 0
    while pyro.sample(f"another_{days}", dist.Bernoulli(0.7)):
        days += 1
        state = pyro.sample(f"state_{days}", dist.Categorical(transitions[state]))
    pyro.deterministic("days", torch.tensor(float(days)))
    sure = torch.tensor([[0.9, 0.05, 0.05], [0.05, 0.9, 0.05], [0.05, 0.05, 0.9]])
    pyro.sample("last", dist.Categorical(sure[state]), obs=last)


def markov_chain_answers():
    state, chances = np.eye(3)[0], []
    for days in range(200):
        chances.append(0.3 * 0.7**days * (state @ [0.05, 0.05, 0.9]))
        state = state @ WEATHER
    total = sum(chances)
    return {EVIDENCE: math.log(total), "E[days]": np.dot(chances, np.arange(200)) / total}


def two_coins(rounds):
    """Two coins are tossed until both show heads; the second only if the first does."""
    p = pyro.sample("p", dist.Beta(4.0, 2.0))
    q = pyro.sample("q", dist.Beta(4.0, 2.0))
    n = 1
    while not (
        pyro.sample(f"first_{n}", dist.Bernoulli(p)) and pyro.sample(f"second_{n}", dist.Bernoulli(q))
    ):
        n += 1
    pyro.sample("rounds", dist.Normal(float(n), 0.7), obs=rounds)


def two_coins_answers():
    x, w = np.polynomial.legendre.leggauss(200)
    x, w = (x + 1) / 2, w / 2 * stats.beta(4, 2).pdf((x + 1) / 2)
    both = x[:, None] * x
    n = np.arange(1, 200)
    likes = stats.norm(n, 0.7).pdf(4.0) * (1 - both[..., None]) ** (n - 1) * both[..., None]
    total = np.einsum("i,j,ijn->", w, w, likes)
    return {EVIDENCE: math.log(total), "E[p]": np.einsum("i,i,j,ijn->", x, w, w, likes) / total}


def faults(hours):
    """Why a plant stood still: its power, or both of its pumps, until they were repaired."""

    def down(name, chance):
        if not pyro.sample(f"{name}_fails", dist.Bernoulli(chance)):
            return torch.tensor(0.0)
        lost = torch.tensor(0.0)
        attempt = 0
        while True:
            lost = lost + pyro.sample(f"{name}_repair_{attempt}", dist.Exponential(1.0))
            if pyro.sample(f"{name}_works_{attempt}", dist.Bernoulli(0.8)):
                return lost
            attempt += 1

    lost = down("power", 0.2) + min(down("left", 0.5), down("right", 0.5))
    pyro.sample("hours", dist.Normal(lost, 0.4), obs=hours)


def faults_answers():
    # A repair, with all attempts, is exponential at a rate of 0.8; the first of two at 1.6.
    h = (np.arange(200_000) + 0.5) * 1e-4
    seen = stats.norm(h, 0.4).pdf(1.5) * 1e-4
    power, pumps = 0.8 * np.exp(-0.8 * h) @ seen, 1.6 * np.exp(-1.6 * h) @ seen
    both = 0.8 * 1.6 / (1.6 - 0.8) * (np.exp(-0.8 * h) - np.exp(-1.6 * h)) @ seen
    none = 0.8 * 0.75 * stats.norm(0, 0.4).pdf(1.5)
    failed = 0.2 * (0.75 * power + 0.25 * both)
    total = none + 0.8 * 0.25 * pumps + failed
    return {EVIDENCE: math.log(total), "P(power)": failed / total}


ENTRIES = [
    Entry(
        birth_death,
        "pyro",
        origin="Kendall 1948; Ronquist et al. 2021",
        args=(torch.tensor(2.0),),
        against="quadrature",
        answers=birth_death_answers,
        read={"E[birth]": lambda draws: draws["birth"]},
    ),
    Entry(
        observed_tree,
        "pyro",
        origin="Ronquist et al. 2021, constant rates",
        args=({"age": 0.6, "left": {"age": 0.0}, "right": {"age": 0.0}},),
        against="quadrature",
        answers=observed_tree_answers,
        read={"E[birth]": lambda draws: draws["birth"]},
    ),
    Entry(
        surnames,
        "pyro",
        origin="Galton and Watson 1875",
        args=(torch.tensor(3.0),),
        against="enumeration",
        answers=surnames_answers,
        read={"E[sons]": lambda draws: draws["sons_0_0"]},
    ),
    Entry(
        markov_chain,
        "pyro",
        origin="textbooks",
        args=(torch.tensor(2),),
        against="matrix powers",
        answers=markov_chain_answers,
        read={"E[days]": lambda draws: draws["days"]},
    ),
    Entry(
        two_coins,
        "pyro",
        origin="Gordon et al. 2014",
        args=(torch.tensor(4.0),),
        against="quadrature",
        answers=two_coins_answers,
        read={"E[p]": lambda draws: draws["p"]},
    ),
    Entry(
        faults,
        "pyro",
        origin="fault trees with repair",
        args=(torch.tensor(1.5),),
        against="quadrature",
        answers=faults_answers,
        read={"P(power)": lambda draws: draws["power_fails"]},
        options={"discovery": pathmix.Guided(500, rounds=1, round_paths=32), "guide": "meanfield"},
    ),
]
