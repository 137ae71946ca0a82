"""Sums that are too wide end a run only where the prior leads to them; proposed paths are left out."""

import numpy as np
import numpyro
import numpyro.distributions as dist
import pyro
import pytest
import torch
from scipy import stats

import pathmix
from pathmix.summation import plan, summing

SEEN = (1.0, 1.0, 0.0)
MOST = 3  # balls


def numpyro_urn():
    n = int(numpyro.sample("n", dist.Poisson(0.5))) + 1
    with numpyro.plate("balls", n):
        blue = numpyro.sample("blue", dist.Bernoulli(0.5))
    for i, color in enumerate(SEEN):
        ball = numpyro.sample(f"ball_{i}", dist.Categorical(np.full(n, 1 / n)))
        numpyro.sample(f"seen_{i}", dist.Bernoulli(0.2 + 0.6 * blue[ball]), obs=color)


def pyro_urn():
    n = int(pyro.sample("n", pyro.distributions.Poisson(0.5))) + 1
    with pyro.plate("balls", n):
        blue = pyro.sample("blue", pyro.distributions.Bernoulli(0.5))
    for i, color in enumerate(SEEN):
        ball = pyro.sample(f"ball_{i}", pyro.distributions.Categorical(torch.ones(n)))
        chance = 0.2 + 0.6 * blue[ball]
        pyro.sample(f"seen_{i}", pyro.distributions.Bernoulli(chance), obs=torch.tensor(color))


def joint(n):
    """Of a number of balls with the data, by all numbers of blue ones."""
    blue = np.arange(n + 1)
    chance = 0.2 + 0.6 * blue / n
    like = np.prod([chance if color else 1 - chance for color in SEEN], axis=0)
    return stats.poisson(0.5).pmf(n - 1) * stats.binom(n, 0.5).pmf(blue) @ like


@pytest.mark.parametrize("model", [numpyro_urn, pyro_urn])
def test_proposed_paths_with_too_much_to_sum_are_left_out(model, monkeypatch):
    monkeypatch.setattr(plan, "_MOST_CELLS", MOST * 2**MOST)
    monkeypatch.setattr(summing, "_MOST_SETTINGS", 2)
    discovery = pathmix.Guided(samples=8, rounds=1)
    posterior = pathmix.SDVI(model, discovery=discovery, progress=False).run(0)
    assert {path.pinned["n"] + 1 for path in posterior.paths} == set(range(1, MOST + 1))
    assert posterior.log_evidence == pytest.approx(np.log(sum(map(joint, range(1, MOST + 1)))), abs=1e-8)
    left = stats.poisson(0.5).sf(MOST - 1)
    assert posterior.discovery.unseen_bound == pytest.approx(left, rel=1e-6) and not posterior.verdict.ok
