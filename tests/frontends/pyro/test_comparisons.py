"""Who looks at a comparison looks at what is compared: no trace is needed to tell that it decides."""

import numpy as np
import pyro
import pyro.distributions as dist
import pytest
import torch

from pathmix.engine.precision import Engine, engine_scope
from pathmix.frontends.pyro import undecided
from pathmix.frontends.recognise import bind
from pathmix.program.seeds import Seed

THIRDS = torch.ones(3) / 3


def equal():
    kind = pyro.sample("kind", dist.Categorical(THIRDS))
    scale = 2.0 if kind == 1 else 1.0
    return pyro.sample("x", dist.Normal(0.0, scale))


def combined():
    kind, coin = pyro.sample("kind", dist.Categorical(THIRDS)), pyro.sample("coin", dist.Bernoulli(0.5))
    scale = 2.0 if (kind.lt(2) & ~(coin > 0)) else 1.0
    return pyro.sample("x", dist.Normal(0.0, scale))


def reversed_order():
    kind = pyro.sample("kind", dist.Categorical(THIRDS))
    scale = 2.0 if 0 < kind else 1.0  # noqa: SIM300
    return pyro.sample("x", dist.Normal(0.0, scale))


def not_looked_at(x=torch.tensor(0.3)):
    """What it gives is no number that Python sees."""
    first, second = (pyro.sample(name, dist.Bernoulli(0.3)) for name in ("first", "second"))
    mean = pyro.sample("mean", dist.Normal(0.0, 1.0))
    pyro.sample("a", dist.Normal(torch.where(first == 1, mean, 0.0), 1.0), obs=x)
    pyro.sample("b", dist.Normal(torch.where(second == 1, mean, 0.0), 1.0), obs=x)


def explored(model, monkeypatch):
    """Paths of 60 runs, and how many traces were made only to tell what decides."""
    traces, plain = [], undecided.deciding_sites

    def counted(*arguments):
        traces.append(arguments)
        return plain(*arguments)

    monkeypatch.setattr(undecided, "deciding_sites", counted)
    with engine_scope(Engine("float64", cache=False)):
        program = bind(model, ())
        runs = list(program.frontend.explore(program, Seed.of(0), np.ones(60, bool)))
    return [run.path for run in runs], len(traces)


@pytest.mark.parametrize(("model", "count"), [(equal, 3), (combined, 6), (reversed_order, 3)])
def test_comparisons_that_python_looks_at(model, count, monkeypatch):
    paths, traces = explored(model, monkeypatch)
    assert len(paths) == count
    assert not any(path.summed for path in paths)
    assert traces == 0


def test_comparisons_that_nobody_looks_at(monkeypatch):
    paths, traces = explored(not_looked_at, monkeypatch)
    assert len(paths) == 4  # so few that nothing is gained by summing
    assert traces == 1
