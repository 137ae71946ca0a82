"""Values that are put in and do not fit the run that they come to are drawn there instead."""

import numpy as np
import numpyro
import numpyro.distributions as ndist
import pyro
import pyro.distributions as dist
import pytest
import torch
from scipy import stats

import pathmix
from pathmix.engine.precision import engine_scope
from pathmix.frontends.recognise import bind
from pathmix.program.seeds import Seed
from pathmix.program.wishes import Wishes


def of_numpyro(y):
    count = int(numpyro.sample("count", ndist.Categorical(np.ones(4) / 4))) + 1
    kind = numpyro.sample("kind", ndist.Categorical(np.ones(count) / count))
    colors = numpyro.sample("colors", ndist.Bernoulli(0.5).expand([count]).to_event(1))
    if colors[0] == 1 and kind == count - 1:
        numpyro.sample("more", ndist.Normal(0.0, 1.0))
    numpyro.sample("y", ndist.Normal(1.0 * kind, 1.0), obs=y)


def of_pyro(y):
    count = int(pyro.sample("count", dist.Categorical(torch.ones(4)))) + 1
    kind = pyro.sample("kind", dist.Categorical(torch.ones(count)))
    colors = pyro.sample("colors", dist.Bernoulli(0.5).expand([count]).to_event(1))
    if colors[0] == 1 and kind == count - 1:
        pyro.sample("more", dist.Normal(0.0, 1.0))
    pyro.sample("y", dist.Normal(1.0 * kind, 1.0), obs=y)


MODELS = {"numpyro": (of_numpyro, 2.0), "pyro": (of_pyro, torch.tensor(2.0))}


@pytest.mark.parametrize("library", MODELS)
def test_a_shape_or_a_value_that_does_not_fit(library):
    """A kind that is too large for two, and colors for four."""
    model, y = MODELS[library]
    given = {
        "count": np.ones(32, int),
        "kind": np.full(32, 3),
        "colors": np.ones((32, 4), int),
    }
    with engine_scope("float64"):
        program = bind(model, (y,))
        found = program.frontend.explore(
            program, Seed.of(0), np.ones(32, bool), wishes=Wishes(given, proposed=True)
        )
        for batch_run in found:
            rows = batch_run.followed
            assert np.all(batch_run.values["count"][rows] == 1)
            assert np.all(batch_run.values["kind"][rows] < 2)
            assert batch_run.values["colors"][rows].shape[1:] == (2,)


@pytest.mark.parametrize("library", MODELS)
def test_searches_come_to_their_end(library):
    model, y = MODELS[library]
    counts = np.arange(1, 5)
    likes = [np.mean(stats.norm.pdf(2.0, np.arange(count), 1.0)) for count in counts]
    posterior = pathmix.SDVI(
        model,
        discovery=pathmix.Guided(20, rounds=3),
        allocation=pathmix.SuccessiveHalving(budget=500),
        progress=False,
    ).run(0, y)
    assert posterior.log_evidence == pytest.approx(np.log(np.mean(likes)), abs=0.05)


def test_a_cold_cache_is_no_hidden_randomness():
    known = {}

    def model(y):
        rate = pyro.sample("rate", dist.Bernoulli(0.3))
        if "scale" not in known:
            known["scale"] = 2.0 if torch.tensor(1.0) > 0 else 3.0
        if rate:
            pyro.sample("more", dist.Normal(0.0, 1.0))
        pyro.sample("y", dist.Normal(0.0, known["scale"]), obs=y)

    posterior = pathmix.SDVI(
        model, discovery=pathmix.PriorDiscovery(30), allocation=pathmix.Uniform(100), progress=False
    ).run(0, torch.tensor(1.0))
    assert len(posterior.paths) == 2


def test_impossible_paths_without_free_sites_are_in_no_doubt():
    def model():
        first = numpyro.sample("first", ndist.Bernoulli(0.5))
        second = numpyro.sample("second", ndist.Bernoulli(0.5))
        numpyro.factor("odd", 0.0 if first != second else -np.inf)

    posterior = pathmix.SDVI(model, progress=False).run(0)
    assert posterior.verdict.ok
    assert posterior.log_evidence == pytest.approx(np.log(0.5))
