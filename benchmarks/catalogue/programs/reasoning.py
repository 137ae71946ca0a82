"""Reasoning about reasoning."""

import math
from functools import cache
from queue import Queue

import numpy as np
import pyro
import pyro.distributions as dist
import torch
from pyro import poutine

from benchmarks.catalogue.entry import EVIDENCE, Entry


def marginal(model, size):
    """The distribution of what a program of discrete sites returns, by running it at all values."""
    queue, weights = Queue(), torch.zeros(size)
    queue.put(poutine.Trace())
    run = poutine.trace(poutine.queue(model, queue=queue))
    with poutine.block():
        while not queue.empty():
            trace = run.get_trace()
            weights[trace.nodes["_RETURN"]["value"]] += trace.log_prob_sum().exp()
    return dist.Categorical(weights / weights.sum())


UTTERANCES = ["none", "some", "all"]


def true(utterance, apples):
    return {"none": apples == 0, "some": apples > 0, "all": apples == 3}[utterance]


@cache
def literal_listener(utterance):
    def model():
        apples = pyro.sample("apples", dist.Categorical(torch.ones(4) / 4)).item()
        pyro.factor("meaning", 0.0 if true(utterance, apples) else -math.inf)
        return apples

    return marginal(model, 4)


@cache
def speaker(apples):
    def model():
        utterance = pyro.sample("utterance", dist.Categorical(torch.ones(3) / 3)).item()
        pyro.sample("heard", literal_listener(UTTERANCES[utterance]), obs=torch.tensor(apples))
        return utterance

    return marginal(model, 3)


def implicature(utterance):
    """Some apples are red, so not all are: a listener who reasons about the speaker."""
    apples = pyro.sample("apples", dist.Categorical(torch.ones(4) / 4)).item()
    pyro.sample("said", speaker(apples), obs=torch.tensor(UTTERANCES.index(utterance)))


def implicature_answers():
    literal = np.array([[1, 0, 0, 0], [0, 1 / 3, 1 / 3, 1 / 3], [0, 0, 0, 1]])
    says = literal / literal.sum(0)
    heard = says[1] / 4
    return {EVIDENCE: math.log(heard.sum()), "P(all)": heard[3] / heard.sum()}


def schelling(met):
    """How deeply two friends reason about each other, if they meet so often in the popular bar."""

    @cache
    def place(depth):
        prior = dist.Categorical(torch.tensor([0.4, 0.6]))
        if depth == 0:
            return prior

        def model():
            mine = pyro.sample("mine", prior).item()
            pyro.sample("theirs", place(depth - 1), obs=torch.tensor(mine))
            return mine

        return marginal(model, 2)

    depth = int(pyro.sample("depth", dist.Geometric(0.4)))
    for i, bar in enumerate(met):
        pyro.sample(f"bar_{i}", place(depth), obs=bar)


def schelling_answers():
    depth = np.arange(200)
    popular = 1 / (1 + (0.4 / 0.6) ** (depth + 1))
    chances = 0.4 * 0.6**depth * popular**4 * (1 - popular)
    return {EVIDENCE: math.log(chances.sum()), "E[depth]": chances @ depth / chances.sum()}


ENTRIES = [
    Entry(
        implicature,
        "pyro",
        origin="pyro.ai, rational speech acts",
        args=("some",),
        against="by hand",
        answers=implicature_answers,
        read={"P(all)": lambda draws: draws["apples"] == 3},
    ),
    Entry(
        schelling,
        "pyro",
        origin="Stuhlmüller and Goodman 2014",
        args=(torch.tensor([1, 1, 0, 1, 1]),),
        against="summation",
        answers=schelling_answers,
        read={"E[depth]": lambda draws: draws["depth"]},
    ),
]
