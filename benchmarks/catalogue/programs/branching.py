"""Loops and branches on random values."""

import math

import numpy as np
import pyro
import pyro.distributions as dist
import torch
from scipy import stats
from scipy.special import logsumexp

from benchmarks.catalogue.entry import EVIDENCE, Entry


def geometric(y):
    """Failures before the first success, seen with noise."""

    def failures(tries=0):
        if pyro.sample(f"success_{tries}", dist.Bernoulli(0.4)):
            return tries
        return failures(tries + 1)

    count = pyro.deterministic("count", torch.tensor(float(failures())))
    pyro.sample("y", dist.Normal(count, 1.5), obs=y)


def geometric_answers():
    counts = np.arange(400)
    logs = math.log(0.4) + counts * math.log(0.6) + stats.norm(counts, 1.5).logpdf(6.0)
    return {EVIDENCE: logsumexp(logs), "E[count]": np.exp(logs - logsumexp(logs)) @ counts}


ENTRIES = [
    Entry(
        geometric,
        "pyro",
        origin="pyro.ai, introduction to models; Goodman et al. 2008",
        args=(torch.tensor(6.0),),
        against="summation",
        answers=geometric_answers,
        read={"E[count]": lambda draws: draws["count"]},
    ),
]
