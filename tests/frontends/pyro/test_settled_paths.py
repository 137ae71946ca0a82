"""Paths without free sites: read off a run, with the answers that a traced graph, and enumeration, give."""

import importlib
import itertools

import jax
import numpy as np
import pyro
import pyro.distributions as dist
import pytest
import torch
from pyro import poutine

import pathmix
from pathmix.engine.precision import engine_scope
from pathmix.errors import HiddenRandomnessError, ImpossibleObservationError, UnsupportedSiteError
from pathmix.frontends.pyro.lower import lower
from pathmix.frontends.pyro.scope import frontend_scope
from pathmix.frontends.recognise import bind
from pathmix.program.seeds import Seed
from pathmix.regions.region import read_region
from tests.paths import discover

replaying = importlib.import_module("pathmix.frontends.pyro.replay")
Y = torch.tensor([3.0, 1.0, 4.0], dtype=torch.float64)


def dice(y):
    count = int(pyro.sample("count", dist.Categorical(torch.tensor([0.2, 0.5, 0.3])))) + 1
    total = torch.zeros(())
    for i in range(count):
        total = total + pyro.sample(f"die_{i}", dist.Categorical(torch.ones(3) / 3)) + 1
    pyro.deterministic("total", total)
    with pyro.plate("data", len(y)):
        pyro.sample("y", dist.Poisson(total), obs=y)


def factors(y):
    a = pyro.sample("a", dist.Bernoulli(0.3))
    b = pyro.sample("b", dist.Bernoulli(0.2 + 0.6 * a))
    pyro.factor("agree", torch.where(a == b, 0.7, -0.2))
    if a + b > 1:
        pyro.factor("both", 0.4 * y.sum())


def masks(y):
    k = pyro.sample("k", dist.Categorical(torch.ones(4) / 4))
    with poutine.mask(mask=y > 2), pyro.plate("data", len(y)):
        pyro.sample("y", dist.Normal(k.to(y.dtype), 1.0), obs=y)
    with poutine.scale(scale=0.5):
        pyro.sample("z", dist.Bernoulli(0.1 + 0.2 * k), obs=torch.tensor(1.0))


def parameters(y):
    rate = pyro.param("rate", torch.tensor(0.4), constraint=dist.constraints.positive)
    coins = pyro.sample("coins", dist.Bernoulli(torch.tensor([0.5, 0.25])).to_event(1))
    level = torch.zeros(2)
    level[0] = coins[0]
    level[1] = level[0] + coins.sum()
    pyro.deterministic("level", level)
    pyro.sample("y", dist.Normal(level.sum(), rate).expand([3]).to_event(1), obs=y)


def supports(y):
    top = pyro.sample("top", dist.Categorical(torch.ones(6) / 6))
    below = pyro.sample("below", dist.Binomial(top.double(), 0.5))
    pyro.sample("y", dist.Uniform(below - 1.0, top + 0.5).expand([3]).to_event(1), obs=y)


def subsampled(y):
    k = pyro.sample("k", dist.Categorical(torch.tensor([0.3, 0.7])))
    with pyro.plate("data", len(y), subsample_size=2) as rows:
        pyro.sample("y", dist.Normal(3.0 * k, 2.0), obs=y[rows])


def indexed(y):
    k = pyro.sample("k", dist.Categorical(torch.ones(3) / 3))
    level = y[k] + torch.zeros(k + 1).sum()
    if y[0] > 2:  # a decision on data
        pyro.factor("near", -level)


PROGRAMS = [dice, factors, masks, parameters, supports, subsampled, indexed]
every_program = pytest.mark.parametrize("model", PROGRAMS, ids=lambda model: model.__name__)


def whole(model):
    """The model without subsampling, as its density is meant."""
    if model is not subsampled:
        return model

    def unsampled(y):
        k = pyro.sample("k", dist.Categorical(torch.tensor([0.3, 0.7])))
        with pyro.plate("data", len(y)):
            pyro.sample("y", dist.Normal(3.0 * k, 2.0), obs=y)

    return unsampled


def at(model, path):
    """Pyro's own trace of a path."""
    torch.set_default_dtype(torch.float64)
    try:
        values = {name: torch.as_tensor(np.array(value, float)) for name, value in path.pinned}
        if model is indexed or model is subsampled:
            values = {name: value.long() for name, value in values.items()}
        with pyro.validation_enabled(False):
            trace = poutine.trace(poutine.condition(whole(model), values)).get_trace(Y)
            trace.compute_log_prob()
            return trace
    finally:
        torch.set_default_dtype(torch.float32)


def outputs(slp):
    values = [site.pinned for site in slp.sites]
    with jax.enable_x64(True):
        return [np.asarray(value) for value in slp.graph(slp.graph.consts, values)]


@every_program
def test_settled_densities_are_those_of_pyro(model):
    found = discover(model, Y, samples=600)
    for path in found.paths:
        slp, trace = path.slp, at(model, path.slp.path)
        log_prior, log_likelihood, *_ = outputs(slp)
        prior = sum(trace.nodes[name]["log_prob_sum"].detach() for name in slp.path.addresses)
        if not np.isneginf(log_likelihood):  # Pyro's densities do not know their supports
            np.testing.assert_allclose(log_prior + log_likelihood, trace.log_prob_sum().detach(), rtol=1e-12)
        np.testing.assert_allclose(log_prior, prior, rtol=1e-12)
        for name, slot in slp.deterministics:
            np.testing.assert_allclose(outputs(slp)[slot], trace.nodes[name]["value"].detach(), rtol=1e-12)
        for name, slot in slp.drawn:
            np.testing.assert_allclose(outputs(slp)[slot], trace.nodes[name]["log_prob_sum"], rtol=1e-12)
        np.testing.assert_allclose(path.prior_mass, np.exp(float(prior)), rtol=1e-12)
    assert found.unseen_is_exact
    assert abs(sum(path.prior_mass for path in found.paths) + found.unseen_mass - 1) < 1e-12


@every_program
def test_settled_graphs_are_those_of_the_trace(model, monkeypatch):
    with engine_scope("float64"):
        program = bind(model, (Y,))
        for batch_run in program.frontend.explore(program, Seed.of(0), np.ones(30, bool)):
            slp = program.frontend.replay(program, batch_run)
            with monkeypatch.context() as patch, frontend_scope():
                patch.setattr(replaying, "_pinned", lambda _: set())  # every site is an input
                flat, seen = replaying._whole(program, batch_run)
                traced = lower(flat, seen.contents(), batch_run)
            assert not slp.graph.jaxpr.eqns
            assert traced.path == slp.path and traced.indicators == slp.indicators
            assert dict(traced.drawn).keys() == dict(slp.drawn).keys()
            values = [site.pinned for site in slp.sites]
            expected = traced.graph(traced.graph.consts, values)
            first = [*range(2 + len(slp.conditions))]
            slots = first + [slot for _, slot in (*slp.deterministics, *slp.drawn)]
            others = first + [slot for _, slot in (*traced.deterministics, *traced.drawn)]
            for slot, other in zip(slots, others, strict=True):
                np.testing.assert_allclose(outputs(slp)[slot], expected[other], rtol=1e-12)
                assert slp.graph.output_shape(slot) == traced.graph.output_shape(other)


def test_paths_with_as_many_outputs_have_one_structure():
    found = discover(dice, Y, samples=300)
    by_sites = {}
    for path in found.paths:
        by_sites.setdefault(len(path.slp.sites), set()).add(path.slp.graph.structure)
    assert all(len(structures) == 1 for structures in by_sites.values())


def test_settled_paths_take_no_forced_runs():
    found = discover(dice, Y, samples=300)
    assert all(len(path.draws["count"]) == path.followers for path in found.paths)
    assert found.runs < 300


def test_posterior_is_that_of_enumeration():
    posterior = pathmix.SDVI(dice, discovery=pathmix.PriorDiscovery(1_500)).run(0, Y)
    logs = {}
    for count in range(3):
        for faces in itertools.product(range(3), repeat=count + 1):
            total = sum(faces) + count + 1
            log_prior = np.log([0.2, 0.5, 0.3][count]) - (count + 1) * np.log(3)
            logs[count, *faces] = log_prior + float(dist.Poisson(float(total)).log_prob(Y).sum())
    evidence = np.logaddexp.reduce(list(logs.values()))
    assert len(posterior.paths) == len(logs)
    for path in posterior.paths:
        exact = logs[tuple(path.pinned.values())] - evidence
        np.testing.assert_allclose(np.log(path.weight), exact, rtol=1e-9)
    np.testing.assert_allclose(posterior.elbo, evidence, rtol=1e-12)
    draws = posterior.sample(1, 50)
    values = [draws[name] for name in ("count", "total")]
    assert all(len(np.asarray(value)) == 50 for value in values)


def test_impossible_data_are_refused():
    def impossible(y):
        k = pyro.sample("k", dist.Bernoulli(0.5))
        pyro.sample("y", dist.Poisson(1.0 + k), obs=-y[0])

    with pytest.raises(ImpossibleObservationError, match="'y'"):
        pathmix.SDVI(impossible).run(0, Y)


@pytest.mark.parametrize("decides", [True, False])
def test_whether_a_site_decides_is_known(decides):
    def model(y):
        k = pyro.sample("k", dist.Poisson(2.0 if decides else 100_000.0))
        if decides:
            k = int(k)
        pyro.sample("y", dist.Normal(k, 1.0), obs=y[0])

    for path in discover(model, Y, samples=20).paths:
        if decides:
            read_region(path.slp, path.draws)
        else:
            with pytest.raises(UnsupportedSiteError, match="'k'"):
                read_region(path.slp, path.draws)


@pytest.mark.parametrize("noise", [lambda: float(np.random.rand()), lambda: torch.rand(())])
def test_hidden_randomness_is_seen(noise):
    def model():
        pyro.sample("k", dist.Bernoulli(0.5))
        pyro.factor("hidden", torch.as_tensor(noise()))

    with pytest.raises(HiddenRandomnessError):
        discover(model, samples=20)
