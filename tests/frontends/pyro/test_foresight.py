"""Runs that are foreseen are the runs that the program would have made, bit by bit."""

from importlib import import_module
from typing import ClassVar

import numpy as np
import pyro
import pyro.distributions as dist
import pytest
import torch

from pathmix.engine.precision import engine_scope
from pathmix.frontends.pyro.foresight import Foresight
from pathmix.frontends.pyro.record import record
from pathmix.frontends.recognise import bind
from pathmix.program.seeds import Seed
from tests.zoo import pyro_programs

SEEDS = 60


class ByNumPy(dist.TorchDistribution):
    """Draws with NumPy, unseen by PyTorch."""

    arg_constraints: ClassVar = {}
    support = dist.constraints.real

    def __init__(self, shift):
        self.shift = shift
        super().__init__()

    def sample(self, sample_shape=torch.Size()):
        return torch.as_tensor(self.shift.numpy() + torch.randn(()).item())

    def log_prob(self, value):
        return -((value - self.shift) ** 2) / 2


def written_later():
    level = torch.zeros(2)
    first = pyro.sample("first", dist.Bernoulli(0.5))
    level[0] = 3 * first
    z = pyro.sample("z", dist.Normal(level, 1.0).to_event(1))
    level[0] = 100.0
    level[1] = z[0]


def hierarchy():
    coin = pyro.sample("coin", dist.Bernoulli(0.5))
    mean = pyro.sample("mean", dist.Normal(coin, 1.0))
    pyro.sample("x", dist.Normal(mean, 1.0))


def through_a_view():
    coin = pyro.sample("coin", dist.Bernoulli(0.5))
    level = torch.zeros(3)
    row = level[1:]
    row[0] = pyro.sample("a", dist.Normal(coin, 1.0))
    pyro.sample("b", dist.Normal(level.sum(), 1.0))


def decided():
    u = pyro.sample("u", dist.Normal(0.0, 1.0))
    if u > 0:
        pyro.sample("v", dist.Normal(1.0, 1.0))
    pyro.sample("w", dist.Bernoulli(0.5))


def probability():
    u = pyro.sample("u", dist.Uniform(0.0, 1.0))
    if pyro.sample("coin", dist.Bernoulli(u)):
        pyro.sample("v", dist.Normal(0.0, 1.0))


def counted():
    x = pyro.sample("x", dist.Normal(torch.zeros(4), 1.0).to_event(1))
    for i in range(len(x[x > 0])):
        pyro.sample(f"z_{i}", dist.Normal(0.0, 1.0))


def computed_index():
    u = pyro.sample("u", dist.Normal(0.0, 1.0))
    table = torch.arange(3.0)
    pyro.sample("y", dist.Normal(table[(2 * u).long().reshape(1)].sum(), 1.0), obs=torch.tensor(1.0))


def fails_at_times():
    pyro.sample("coin", dist.Bernoulli(0.5))
    u = pyro.sample("u", dist.Normal(0.0, 1.0))
    torch.linalg.cholesky(u * torch.eye(2))


def invalid_at_times():
    pyro.sample("coin", dist.Bernoulli(0.5))
    u = pyro.sample("u", dist.Normal(0.0, 1.0))
    pyro.sample("y", dist.Normal(0.0, u), obs=torch.tensor(1.0))


def by_numpy():
    coin = pyro.sample("coin", dist.Bernoulli(0.5))
    u = pyro.sample("u", dist.Normal(coin, 1.0))
    pyro.sample("v", ByNumPy(u))


def batched():
    coin = pyro.sample("coin", dist.Bernoulli(0.5))
    u = pyro.sample("u", dist.Normal(torch.zeros(3), 1.0 + coin).to_event(1))
    level = torch.vmap(lambda element: 2 * element)(u).sum()
    pyro.sample("v", dist.Normal(level, 1.0))


def sparse():
    coin = pyro.sample("coin", dist.Bernoulli(0.5))
    u = pyro.sample("u", dist.Normal(torch.zeros(3, 1), 1.0 + coin).to_event(2))
    pyro.sample("v", dist.Normal(torch.sparse.mm(torch.eye(3).to_sparse(), u).sum(), 1.0))


def plates():
    coin = pyro.sample("coin", dist.Bernoulli(0.5))
    with pyro.plate("rows", 3):
        pyro.sample("x", dist.Normal(coin, 1.0))
        pyro.sample("k", dist.Categorical(torch.ones(2) / 2))


def tossed():
    p = pyro.sample("p", dist.Beta(2.0, 2.0))
    tosses = 0
    while not pyro.sample(f"heads_{tosses}", dist.Bernoulli(p)):
        pyro.sample(f"y_{tosses}", dist.Normal(p, 1.0), obs=torch.tensor(0.5))
        tosses += 1
    pyro.sample("z", dist.Normal(torch.zeros(tosses + 1), 1.0).to_event(1))


def tossed_and_used():
    theta = pyro.sample("theta", dist.Dirichlet(torch.ones(3)))
    k = int(pyro.sample("k", dist.Categorical(theta)))
    pyro.sample("z", dist.Normal(theta[k], 1.0))


def tossed_and_compared():
    p = pyro.sample("p", dist.Beta(2.0, 2.0))
    pyro.sample("heads", dist.Bernoulli(p))
    if p > 0.3:
        pyro.sample("z", dist.Normal(0.0, 1.0))


OWN = [
    tossed, tossed_and_used, tossed_and_compared,
    written_later, hierarchy, through_a_view, decided, probability, counted, computed_index, fails_at_times,
    invalid_at_times, by_numpy, batched, sparse, plates,
]  # fmt: skip
PROGRAMS = {**dict.fromkeys(OWN, ()), **pyro_programs.PROGRAMS}


def explored(model, args):
    with engine_scope("float64"):
        program, failures = bind(model, args), []
        found = program.frontend.explore(
            program, Seed.of(3), np.ones(SEEDS, bool), have=lambda _: 0, on_failure=failures.append
        )
        return {run.path: run for run in found}, [np.flatnonzero(run.followed) for run in failures]


@pytest.mark.parametrize("model", PROGRAMS, ids=lambda model: model.__name__)
def test_foreseen_runs_are_those_of_the_program(model, monkeypatch):
    found, failures = explored(model, PROGRAMS[model])
    monkeypatch.setattr(Foresight, "run", lambda *_: "open")
    exploring = import_module("pathmix.frontends.pyro.explore")
    monkeypatch.setattr(exploring, "record", lambda *args, alike=None, **options: record(*args, **options))
    expected, expected_failures = explored(model, PROGRAMS[model])
    assert list(found) == list(expected)
    np.testing.assert_array_equal(failures, expected_failures)
    for path, run in expected.items():
        np.testing.assert_array_equal(found[path].followed, run.followed)
        np.testing.assert_array_equal(found[path].inside, run.inside)
        assert found[path].sources == run.sources and found[path].site_sources == run.site_sources
        assert found[path].values.keys() == run.values.keys()
        for name, values in run.values.items():
            np.testing.assert_array_equal(found[path].values[name], values)
            assert found[path].values[name].dtype == values.dtype
        assert found[path].invalid.keys() == run.invalid.keys()
        for said, runs in run.invalid.items():
            np.testing.assert_array_equal(found[path].invalid[said], runs)


def runs_of(model):
    found, failures = explored(model, PROGRAMS[model])
    return sum(run.runs for run in found.values()) + len(failures), len(found)


@pytest.mark.parametrize("model", [written_later, pyro_programs.polynomial], ids=lambda m: m.__name__)
def test_one_run_a_path_is_enough_where_nothing_continuous_has_a_say(model):
    runs, paths = runs_of(model)
    assert runs == paths < SEEDS


def test_forced_runs_that_are_drawn_alike_need_one_run_a_path():
    """Beside the runs from the prior: where a continuous value is compared, each needs its own."""
    found, _ = explored(tossed, ())
    assert sum(run.inside.sum() for run in found.values()) > 2 * SEEDS
    assert sum(run.runs for run in found.values()) <= SEEDS + len(found)
    found, _ = explored(tossed_and_compared, ())
    assert sum(run.runs for run in found.values()) > SEEDS + len(found)


@pytest.mark.parametrize("model", [fails_at_times, invalid_at_times, hierarchy], ids=lambda m: m.__name__)
def test_the_program_runs_for_every_seed_where_something_continuous_has_a_say(model):
    assert runs_of(model)[0] >= SEEDS
