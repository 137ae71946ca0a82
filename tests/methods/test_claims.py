"""Paths that need no training: what the data contradict, and what a first look has settled."""

import math
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpyro
import numpyro.distributions as dist
import pyro
import pytest
import torch
from scipy import stats

import pathmix
from pathmix.methods.claims import small
from pathmix.posterior.evidence import UNKNOWN, Evidence
from pathmix.posterior.status import Status


@dataclass(eq=False)
class Work:
    evidence: Evidence


def of(log_evidence, *, settled=True):
    doubts = () if settled else ("khat",)
    return Work(Evidence(log_evidence, 0.01, "importance", effective_draws=1_000.0, doubts=doubts))


def claimed(*paths, crowded=False):
    """Whether each path, a work and a prior mass, needs no training."""
    contenders: Any = [SimpleNamespace(work=work, prior_mass=mass) for work, mass in paths]
    found = small(contenders, crowded=crowded)
    return [one.work in found for one in contenders]


def test_what_is_settled_claims_its_weight():
    assert claimed((of(0.0), 0.5), (of(math.log(1e-3)), 0.5)) == [False, True]
    assert claimed((of(0.0), 0.5), (of(math.log(0.01)), 0.5)) == [False, False]


def test_many_small_ones_are_not_small_together():
    """As many as have one in twenty of the weight need no training, or all where it is crowded."""
    crowd = [(of(0.0), 1e-3) for _ in range(1_000)]
    assert sum(claimed(*crowd)) == pytest.approx(50, abs=1)
    assert sum(claimed(*crowd, crowded=True)) == 1_000
    assert claimed((of(0.0), 0.5), (of(math.log(0.01)), 0.5), crowded=True) == [False, False]
    doubted = [(of(math.log(5e-5), settled=False), 1e-9) for _ in range(4_000)]  # a sixth
    assert sum(claimed((of(0.0), 1.0), *doubted, crowded=True)) == pytest.approx(1_200, abs=2)


def test_what_is_in_doubt_claims_its_prior_mass_too():
    """At the best mean likelihood; a small estimate alone is not believed."""
    best = (of(0.0), 0.9)
    assert claimed(best, (of(-40.0, settled=False), 0.1)) == [False, False]
    assert claimed(best, (of(-40.0, settled=False), 1e-6)) == [False, True]
    assert claimed(best, (of(-3.0, settled=False), 1e-6)) == [False, False]


def test_the_best_mean_likelihood_may_be_that_of_an_exact_path():
    exact, poor = Work(Evidence(0.0, 0.0, "exact")), of(-30.0)
    doubted = (of(-40.0, settled=False), 0.1)
    assert claimed((exact, 0.5), (poor, 0.4), doubted) == [False, True, False]


def test_nothing_is_said_of_what_was_not_looked_at():
    unknown = (Work(UNKNOWN), 1e-9)
    assert claimed((of(0.0), 0.9), unknown) == [False, False]
    assert claimed(unknown) == [False]


def test_twins_claim_together():
    work, other = of(math.log(1.5e-3)), (of(0.0), 0.5)
    assert claimed(other, (work, 0.1)) == [False, True]
    assert claimed(other, (work, 0.1), (work, 0.1)) == [False, False, False]


def numpyro_contradicted(y):
    k = int(numpyro.sample("k", dist.Categorical(probs=np.array([0.5, 0.3, 0.2]))))
    x = numpyro.sample("x", dist.Normal(float(k), 1.0))
    if k == 2:
        numpyro.factor("no", -np.inf)
    numpyro.sample("y", dist.Normal(x, 1.0), obs=y)


def pyro_contradicted(y):
    k = int(pyro.sample("k", pyro.distributions.Categorical(torch.tensor([0.5, 0.3, 0.2]))))
    x = pyro.sample("x", pyro.distributions.Normal(float(k), 1.0))
    pyro.sample("few", pyro.distributions.Delta(torch.tensor(float(k > 1))), obs=torch.tensor(0.0))
    pyro.sample("y", pyro.distributions.Normal(x, 1.0), obs=y)


@pytest.mark.parametrize(
    ("model", "y"), [(numpyro_contradicted, 0.7), (pyro_contradicted, torch.tensor(0.7))]
)
def test_a_path_that_the_data_contradict_is_ruled_out_without_work(model, y):
    posterior = pathmix.SDVI(model, progress=False).run(0, y)
    exact = np.log(np.array([0.5, 0.3]) @ stats.norm([0.0, 1.0], np.sqrt(2)).pdf(0.7))
    assert posterior.log_evidence == pytest.approx(exact, abs=0.01)
    (ruled_out,) = [path for path in posterior.paths if path.pinned["k"] == 2]
    assert ruled_out.status is Status.ZERO and "-inf" in ruled_out.message
    assert ruled_out.likelihood_evaluations == 0 and ruled_out.weight == 0
    assert posterior.verdict.ok
