"""Paths that need no training: what the data contradict, and what a first look has settled."""

import math
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


def contender(log_evidence, prior_mass, *, settled=True, work=None) -> Any:
    doubts = () if settled else ("khat",)
    found = Evidence(log_evidence, 0.01, "importance", effective_draws=1_000.0, doubts=doubts)
    return SimpleNamespace(work=work or SimpleNamespace(evidence=found), prior_mass=prior_mass)


class _Work(SimpleNamespace):
    __hash__ = object.__hash__


def claimed(*contenders):
    for one in contenders:
        one.work = _Work(**vars(one.work)) if not isinstance(one.work, _Work) else one.work
    found = small(contenders)
    return [one.work in found for one in contenders]


def test_what_is_settled_claims_its_weight():
    assert claimed(contender(0.0, 0.5), contender(math.log(0.02), 0.5)) == [False, True]
    assert claimed(contender(0.0, 0.5), contender(math.log(0.2), 0.5)) == [False, False]


def test_many_small_ones_are_not_small_together():
    """As many as have one in twenty of the weight need no training, and the others do."""
    found = claimed(*(contender(0.0, 0.01) for _ in range(100)))
    assert sum(found) == 5


def test_what_is_in_doubt_claims_its_prior_mass_too():
    """At the best mean likelihood; a small estimate alone is not believed."""
    best = contender(0.0, 0.9)
    assert claimed(best, contender(-40.0, 0.1, settled=False)) == [False, False]
    assert claimed(best, contender(-40.0, 1e-6, settled=False)) == [False, True]
    assert claimed(best, contender(-3.0, 1e-6, settled=False)) == [False, False]


def test_nothing_is_said_of_what_was_not_looked_at():
    unknown = SimpleNamespace(work=_Work(evidence=UNKNOWN), prior_mass=1e-9)
    assert claimed(contender(0.0, 0.9), unknown) == [False, False]
    assert claimed(unknown) == [False]


def test_twins_claim_together():
    work = _Work(evidence=Evidence(math.log(0.04), 0.01, "importance", effective_draws=1_000.0))
    twins = [SimpleNamespace(work=work, prior_mass=0.1) for _ in range(2)]
    assert claimed(contender(0.0, 0.5), twins[0]) == [False, True]
    assert claimed(contender(0.0, 0.5), *twins) == [False, False, False]


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
