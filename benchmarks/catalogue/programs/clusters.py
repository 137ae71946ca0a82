"""Unknown numbers of clusters."""

import itertools
import math

import numpy as np
import pyro
import pyro.distributions as dist
import torch
from scipy import stats
from scipy.special import gammaln, logsumexp

import pathmix
from benchmarks.catalogue.entry import EVIDENCE, Entry, count


def partitions(n):
    """All ways to put n things into blocks, as lists of blocks of indices."""
    if n == 0:
        yield []
        return
    for blocks in partitions(n - 1):
        yield [*blocks, [n - 1]]
        for i in range(len(blocks)):
            yield [*blocks[:i], [*blocks[i], n - 1], *blocks[i + 1 :]]


def normal_evidence(points, prior, noise):
    """The log evidence of points around a mean that is normal around zero."""
    k = len(points)
    return stats.multivariate_normal(np.zeros(k), prior**2 + noise**2 * np.eye(k)).logpdf(points)


CLUSTERED = [-4.2, -3.7, -3.9, 0.3, 2.6, 3.1]


def clusters(data):
    """A mixture of an unknown number of normals, with assignments."""
    k = int(pyro.sample("k", dist.Poisson(1.0))) + 1
    means = torch.stack([pyro.sample(f"mean_{i}", dist.Normal(0.0, 4.0)) for i in range(k)])
    with pyro.plate("data", len(data)):
        z = pyro.sample("z", dist.Categorical(torch.ones(k) / k))
        pyro.sample("y", dist.Normal(means[z], 1.0), obs=data)


def clusters_answers():
    k = np.arange(1, 60)
    logs = np.full(len(k), -np.inf)
    for blocks in partitions(len(CLUSTERED)):
        like = sum(normal_evidence(np.array(CLUSTERED)[block], 4, 1) for block in blocks)
        possible = k >= len(blocks)
        ways = gammaln(k + 1) - gammaln(np.maximum(k - len(blocks), 0) + 1) - len(CLUSTERED) * np.log(k)
        logs = np.logaddexp(logs, np.where(possible, ways + like, -np.inf))
    logs = logs + stats.poisson(1).logpmf(k - 1)
    return {EVIDENCE: logsumexp(logs), "E[k]": np.exp(logs - logsumexp(logs)) @ k}


SEATED = [-1.5, -1.0, 0.6, 2.0, 2.4]


def restaurant(data):
    """Customers sit down at tables, or at a new one, one after another."""
    counts, means = [], []
    for i, y in enumerate(data):
        table = int(pyro.sample(f"table_{i}", dist.Categorical(torch.tensor([*counts, 0.7]))))
        if table == len(counts):
            counts.append(0.0)
            means.append(pyro.sample(f"mean_{table}", dist.Normal(0.0, 2.0)))
        counts[table] += 1.0
        pyro.sample(f"y_{i}", dist.Normal(means[table], 0.8), obs=y)


def stick_breaking(data):
    """A Dirichlet process whose sticks are broken when they are needed."""
    sticks, means = [], []

    def cluster(i):
        k = 0
        while True:
            if k == len(sticks):
                sticks.append(pyro.sample(f"stick_{k}", dist.Beta(1.0, 0.7)))
            if pyro.sample(f"stop_{i}_{k}", dist.Bernoulli(sticks[k])):
                return k
            k += 1

    for i, y in enumerate(data):
        k = cluster(i)
        while len(means) <= k:
            means.append(pyro.sample(f"mean_{len(means)}", dist.Normal(0.0, 2.0)))
        pyro.sample(f"y_{i}", dist.Normal(means[k], 0.8), obs=y)


def process_answers(points, quantity):
    """Of a Dirichlet process of concentration 0.7, by all partitions."""
    logs, values = [], []
    for blocks in partitions(len(points)):
        seats = sum(math.log(0.7) + gammaln(len(block)) for block in blocks)
        seats -= sum(math.log(0.7 + i) for i in range(len(points)))
        logs.append(seats + sum(normal_evidence(np.array(points)[block], 2, 0.8) for block in blocks))
        values.append(quantity(blocks))
    return logsumexp(logs), np.exp(np.array(logs) - logsumexp(logs)) @ np.array(values, float)


def restaurant_answers():
    evidence, tables = process_answers(SEATED, len)
    return {EVIDENCE: evidence, "E[tables]": tables}


def stick_breaking_answers():
    points = SEATED[1:3]
    evidence, _ = process_answers(points, len)
    return {
        EVIDENCE: evidence,
        "P(first two same)": process_answers(points, lambda b: [0, 1] in [c[:2] for c in b])[1],
    }


WORDS = ((0, 0, 1, 0), (2, 2, 1, 2))


def topics(documents):
    """Latent Dirichlet allocation with up to three topics."""
    k = 1 + int(pyro.sample("k", dist.Categorical(torch.ones(3) / 3)))
    with pyro.plate("topics", k):
        words = pyro.sample("words", dist.Dirichlet(0.5 * torch.ones(3)))
    for d, document in enumerate(documents):
        theta = pyro.sample(f"theta_{d}", dist.Dirichlet(0.5 * torch.ones(k)))
        with pyro.plate(f"document_{d}", len(document)):
            z = pyro.sample(f"z_{d}", dist.Categorical(theta))
            pyro.sample(f"word_{d}", dist.Categorical(words[z]), obs=document)


def dirichlet_evidence(counts, alpha):
    """The log probability of sequences with such counts, along the last axis."""
    whole = alpha * counts.shape[-1]
    rest = gammaln(counts + alpha).sum(-1) - counts.shape[-1] * gammaln(alpha)
    return gammaln(whole) - gammaln(counts.sum(-1) + whole) + rest


def topics_answers():
    seen = np.eye(3)[np.ravel(WORDS)]
    logs = []
    for k in (1, 2, 3):
        z = np.eye(k)[np.array(list(itertools.product(range(k), repeat=8)))]
        like = dirichlet_evidence(np.einsum("snk,nv->skv", z, seen), 0.5).sum(-1)
        like += dirichlet_evidence(z[:, :4].sum(1), 0.5) + dirichlet_evidence(z[:, 4:].sum(1), 0.5)
        logs.append(logsumexp(like) - math.log(3))
    return {EVIDENCE: logsumexp(logs), "E[k]": np.exp(logs - logsumexp(logs)) @ [1, 2, 3]}


EMITTED = [-2.0, -2.3, 1.1, 1.8, -1.5]


def hidden_states(ys):
    """A hidden Markov model that does not know how many states it has."""
    k = 1 + int(pyro.sample("k", dist.Categorical(torch.ones(3) / 3)))
    means = [pyro.sample(f"mean_{i}", dist.Normal(0.0, 2.0)) for i in range(k)]
    rows = [pyro.sample(f"row_{i}", dist.Dirichlet(torch.ones(k))) for i in range(k)]
    state = 0
    for t, y in enumerate(ys):
        state = pyro.sample(f"state_{t}", dist.Categorical(torch.stack(rows)[state]))
        pyro.sample(f"y_{t}", dist.Normal(torch.stack(means)[state], 0.7), obs=y)


def hidden_states_answers():
    logs = []
    for k in (1, 2, 3):
        found = []
        for states in itertools.product(range(k), repeat=len(EMITTED)):
            moves = np.zeros((k, k))
            np.add.at(moves, ((0, *states[:-1]), states), 1)
            like = dirichlet_evidence(moves, 1.0).sum()
            for i in set(states):
                like += normal_evidence(np.array(EMITTED)[np.array(states) == i], 2, 0.7)
            found.append(like)
        logs.append(logsumexp(found) - math.log(3))
    return {EVIDENCE: logsumexp(logs), "E[k]": np.exp(logs - logsumexp(logs)) @ [1, 2, 3]}


ENTRIES = [
    Entry(
        clusters,
        "pyro",
        origin="Richardson and Green 1997; every library's mixture example",
        args=(torch.tensor(CLUSTERED),),
        against="enumeration of partitions",
        answers=clusters_answers,
        read={"E[k]": lambda draws: draws["k"] + 1},
    ),
    Entry(
        restaurant,
        "pyro",
        origin="Church, Chinese restaurant process",
        args=(torch.tensor(SEATED),),
        against="enumeration of partitions",
        answers=restaurant_answers,
        read={"E[tables]": lambda draws: count(draws, "mean_")},
    ),
    Entry(
        stick_breaking,
        "pyro",
        origin="Church, DPmem; Sethuraman 1994, in small",
        args=(torch.tensor(SEATED[1:3]),),
        against="enumeration of partitions",
        answers=stick_breaking_answers,
        read={"P(first two same)": lambda draws: count(draws, "stop_0_") == count(draws, "stop_1_")},
        options={
            "discovery": pathmix.PriorDiscovery(1_000),
            "allocation": pathmix.SuccessiveHalving(budget=20_000),
        },
    ),
    Entry(
        topics,
        "pyro",
        origin="Blei et al. 2003; pyro.ai, LDA",
        args=([torch.tensor(document) for document in WORDS],),
        against="enumeration of assignments",
        answers=topics_answers,
        read={"E[k]": lambda draws: draws["k"] + 1},
    ),
    Entry(
        hidden_states,
        "pyro",
        origin="Beal et al. 2002, in small",
        args=(torch.tensor(EMITTED),),
        against="enumeration of states",
        answers=hidden_states_answers,
        read={"E[k]": lambda draws: draws["k"] + 1},
    ),
]
