"""Unknown numbers of objects."""

import itertools
import math

import numpy as np
import pyro
import pyro.distributions as dist
import torch
from scipy import stats

import pathmix
from benchmarks.catalogue.entry import EVIDENCE, Entry
from benchmarks.catalogue.programs.clusters import normal_evidence, partitions


def urn(seen):
    """How many balls are in an urn, if draws with replacement look like that."""
    n = int(pyro.sample("n", dist.Poisson(3.0))) + 1
    with pyro.plate("balls", n):
        blue = pyro.sample("blue", dist.Bernoulli(0.5))
    for i, color in enumerate(seen):
        ball = pyro.sample(f"ball_{i}", dist.Categorical(torch.ones(n)))
        pyro.sample(f"seen_{i}", dist.Bernoulli(torch.where(blue[ball] == 1, 0.8, 0.2)), obs=color)


def urn_one_by_one(seen):
    """The same urn, whose balls have colors when they are first drawn."""
    n = int(pyro.sample("n", dist.Poisson(1.0))) + 1
    colors = {}
    for i, color in enumerate(seen):
        ball = int(pyro.sample(f"ball_{i}", dist.Categorical(torch.ones(n))))
        if ball not in colors:
            colors[ball] = "blue" if pyro.sample(f"blue_{ball}", dist.Bernoulli(0.5)) else "green"
        p = 0.8 if colors[ball] == "blue" else 0.2
        pyro.sample(f"seen_{i}", dist.Bernoulli(p), obs=color)


def urn_answers(rate, blue, green):
    n = np.arange(1, 60)
    chances = np.array(
        [
            stats.binom(k, 0.5).pmf(b) @ ((0.2 + 0.6 * b / k) ** blue * (0.8 - 0.6 * b / k) ** green)
            for k in n
            for b in [np.arange(k + 1)]
        ]
    ) * stats.poisson(rate).pmf(n - 1)
    return {EVIDENCE: math.log(chances.sum()), "E[balls]": chances @ n / chances.sum()}


def aircraft(blips):
    """How many aircraft made the blips on a screen: each makes none, one or two."""
    n = int(pyro.sample("aircraft", dist.Poisson(1.5))) + 1
    shown = 0
    for i in range(n):
        position = pyro.sample(f"position_{i}", dist.Normal(2.0, 5.0))
        number = pyro.sample(f"blips_{i}", dist.Categorical(torch.tensor([0.1, 0.5, 0.4]))).item()
        for _ in range(number):
            if shown >= len(blips):
                pyro.factor("too_many", -math.inf)
                return
            pyro.sample(f"blip_{shown}", dist.Normal(position, 1.0), obs=blips[shown])
            shown += 1
    if shown < len(blips):
        pyro.factor("too_few", -math.inf)


def aircraft_answers(blips):
    n = np.arange(1, 40)
    state = np.zeros(len(blips) + 1)
    state[0] = 1.0
    chances = []
    for _ in n:
        following = 0.1 * state
        for size, chance in ((1, 0.5), (2, 0.4)):
            for begin in range(len(blips) + 1 - size):
                like = math.exp(normal_evidence(np.array(blips[begin : begin + size]) - 2, 5, 1))
                following[begin + size] += state[begin] * chance * like
        state = following
        chances.append(state[-1])
    chances = np.array(chances) * stats.poisson(1.5).pmf(n - 1)
    return {EVIDENCE: math.log(chances.sum()), "E[aircraft]": chances @ n / chances.sum()}


TITLES = ("blog", "church", "anglican")
CITED = ["blog", "blog", "church"]


def citations(cited):
    """Do two citations mean the same paper, of which there may be many with one title."""
    n = int(pyro.sample("papers", dist.Poisson(0.6))) + 1
    titles = {}
    for i, text in enumerate(cited):
        paper = int(pyro.sample(f"paper_{i}", dist.Categorical(torch.ones(n))))
        if paper not in titles:
            titles[paper] = TITLES[pyro.sample(f"title_{paper}", dist.Categorical(torch.ones(3)))]
        probs = torch.tensor([0.9 if title == titles[paper] else 0.05 for title in TITLES])
        pyro.sample(f"text_{i}", dist.Categorical(probs), obs=torch.tensor(TITLES.index(text)))


def citations_answers():
    total = same = number = 0.0
    for n, blocks in itertools.product(range(1, 30), partitions(3)):
        p = stats.poisson(0.6).pmf(n - 1) * math.perm(n, len(blocks)) / n**3
        for block in blocks:
            p *= np.mean([math.prod(0.9 if CITED[i] == t else 0.05 for i in block) for t in TITLES])
        total, number = total + p, number + p * n
        same += p * any({0, 1} <= set(block) for block in blocks)
    return {EVIDENCE: math.log(total), "P(first two same)": same / total, "E[papers]": number / total}


DISCS = [(1.4, 1.6, 1.3), (3.2, 2.9, 1.0)]


def picture():
    """Two discs that overlap, with noise."""
    grid = np.arange(5.0)
    image = np.zeros((5, 5))
    for x, y, radius in DISCS:
        image[(grid[:, None] - x) ** 2 + (grid - y) ** 2 < radius**2] = 1.0
    return image + 0.5 * np.random.default_rng(1).normal(size=(5, 5))


def discs(image):
    """How many discs a picture shows."""
    grid = torch.arange(5.0)
    canvas = torch.zeros(5, 5)
    n = int(pyro.sample("n", dist.Geometric(0.5)))
    for i in range(n):
        x = pyro.sample(f"x_{i}", dist.Uniform(0.0, 4.0))
        y = pyro.sample(f"y_{i}", dist.Uniform(0.0, 4.0))
        radius = pyro.sample(f"radius_{i}", dist.Uniform(0.5, 2.0))
        inside = (grid[:, None] - x) ** 2 + (grid - y) ** 2 < radius**2
        canvas = torch.where(inside, torch.ones(()), canvas)
    pyro.sample("image", dist.Normal(canvas, 0.5).to_event(2), obs=image)


def discs_answers():
    """One disc by a fine grid; of more, the last is summed out."""
    rng, size, most, image = np.random.default_rng(0), 120_000, 9, picture()
    x = (np.arange(120) + 0.5) / 30
    near = (x[:, None] - np.arange(5)) ** 2
    squared = near[:, None, :, None] + near[None, :, None, :]
    codes = [
        (squared < radius**2).reshape(-1, 25) @ (1 << np.arange(25))
        for radius in np.linspace(0.5, 2, 60, endpoint=False) + 0.0125
    ]
    unique, number = np.unique(np.concatenate(codes), return_counts=True)
    masks, p = (unique[:, None] >> np.arange(25) & 1).astype(bool), number / number.sum()
    gain = ((2 * image - 1) / (2 * 0.5**2)).ravel()
    likes = np.ones(most)
    for n in range(1, most):
        canvas = masks[rng.choice(len(masks), (size if n > 1 else 1, n - 1), p=p)].any(1)
        likes[n] = np.mean(np.exp(canvas @ gain) * (np.exp((~canvas * gain) @ masks.T) @ p))
    chances = likes * 0.5 ** np.arange(1, most + 1)
    evidence = stats.norm(0, 0.5).logpdf(image).sum() + math.log(chances.sum())
    return {EVIDENCE: evidence, "E[n]": chances @ np.arange(most) / chances.sum()}


BLIPS = [-1.0, 0.4, 3.5]

ENTRIES = [
    Entry(
        urn,
        "pyro",
        origin="Milch et al. 2005, BLOG",
        args=(torch.tensor([1.0] * 6 + [0.0] * 2),),
        against="enumeration",
        answers=lambda: urn_answers(3, 6, 2),
        read={"E[balls]": lambda draws: draws["n"] + 1},
    ),
    Entry(
        urn_one_by_one,
        "pyro",
        origin="Milch et al. 2005, BLOG",
        args=(torch.tensor([1.0, 1.0, 1.0]),),
        against="enumeration",
        answers=lambda: urn_answers(1, 3, 0),
        read={"E[balls]": lambda draws: draws["n"] + 1},
    ),
    Entry(
        aircraft,
        "pyro",
        origin="Milch et al. 2005, BLOG; Anglican",
        args=(torch.tensor(BLIPS),),
        against="recursion over conjugate evidences",
        answers=lambda: aircraft_answers(BLIPS),
        read={"E[aircraft]": lambda draws: draws["aircraft"] + 1},
    ),
    Entry(
        citations,
        "pyro",
        origin="Pasula et al. 2003; BLOG, in small",
        args=(CITED,),
        against="enumeration of partitions",
        answers=citations_answers,
        read={
            "P(first two same)": lambda draws: draws["paper_0"] == draws["paper_1"],
            "E[papers]": lambda draws: draws["papers"] + 1,
        },
        options={"discovery": pathmix.Enumeration(cover=0.99)},
    ),
    Entry(
        discs,
        "pyro",
        origin="inverse graphics: Mansinghka et al. 2013",
        args=(torch.tensor(picture()),),
        against="prior draws of all discs but one, which is summed out",
        answers=discs_answers,
        read={"E[n]": lambda draws: draws["n"]},
        options={
            "discovery": pathmix.PriorDiscovery(200, max_paths=7),
            "allocation": pathmix.SuccessiveHalving(budget=20_000),
            "smc_evaluations": 0,
        },
    ),
]
