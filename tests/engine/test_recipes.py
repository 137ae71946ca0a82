"""Functions travel as recipes, and whoever reads one computes the same bits."""

import logging
import pickle
from contextlib import contextmanager
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import optax
import pytest

import pathmix
from pathmix.cluster.bench import Bench
from pathmix.doors.jaxprs import NotDataError
from pathmix.engine import recipes
from pathmix.engine.executables import Executables
from pathmix.engine.jobs import Function
from pathmix.engine.precision import Engine
from pathmix.engine.requests import Request
from pathmix.errors import RecipeError
from pathmix.program.graph import Graph
from tests.cluster.programs import Y, bits, pyro_walk, walk
from tests.zoo import programs as zoo

FEW = {
    "allocation": pathmix.SuccessiveHalving(600),
    "discovery": pathmix.PriorDiscovery(60),
    "evidence_draws": 20_000,
    "smc_evaluations": 60_000,
    "progress": False,
    "threads": 1,
}


@dataclass
class Here:
    """Computes in this process what others would, and keeps the functions that it was given."""

    threads: int = 1
    given: list[Function] = field(default_factory=list)
    bench: Bench = field(default_factory=Bench)

    @contextmanager
    def crew(self, engine):
        yield self

    def compute(self, job):
        self.given.append(job.function)
        return self.bench.compute(job).results


def fitted(model, *args, **options):
    """Bits of a run whose functions travelled, and these functions."""
    here = Here()
    return bits(pathmix.SDVI(model, executor=here, **{**FEW, **options}).run(0, *args)), here.given


def clipped(y):
    """Derivatives by rules of their own, switches, a loop, a matrix."""
    scale = numpyro.sample("scale", dist.HalfCauchy(1.0))
    factor = numpyro.sample("factor", dist.LKJCholesky(2, 1.0))
    tau = numpyro.sample("tau", dist.Uniform(0, 3))
    total = jax.lax.fori_loop(0, 3, lambda i, v: v + jnp.where(v > 0, jnp.sin(v), jax.nn.relu(v)), scale)
    rates = jnp.where(jnp.arange(3.0) < tau, jax.nn.softplus(total), 1.0)
    numpyro.sample("y", dist.StudentT(3.0, rates, 1 + factor[1, 0] ** 2), obs=y)


@pytest.mark.parametrize(
    ("model", "args"),
    [(walk, (Y,)), (clipped, (Y,)), *((m, zoo.PROGRAMS[m]) for m in (zoo.sum_branch, zoo.minibatched))],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_those_who_read_recipes_compute_the_same_bits(model, args):
    found, functions = fitted(model, *args)
    assert functions and all(function.is_recipe for function in functions)
    assert found == bits(pathmix.SDVI(model, **FEW).run(0, *args))


def test_programs_in_pyro_have_recipes():
    import torch

    found, functions = fitted(pyro_walk, torch.tensor(Y))
    assert functions and all(function.is_recipe for function in functions)
    assert found == bits(pathmix.SDVI(pyro_walk, **FEW).run(0, torch.tensor(Y)))


def test_the_user_s_own_functions_do_not_travel():
    """They may live in a module that others do not have."""
    optimizer = optax.adam(lambda step: 0.01 / (1 + step))
    found, functions = fitted(walk, Y, optimizer=optimizer)
    assert {function.is_recipe for function in functions} == {True, False}  # loops take the optimiser
    assert found == bits(pathmix.SDVI(walk, optimizer=optimizer, **FEW).run(0, Y))


def test_what_cannot_be_read_is_written_down(monkeypatch, caplog):
    def elsewhere(content, arranged):
        raise RecipeError("Of another version.")

    monkeypatch.setattr(recipes, "read", elsewhere)
    with caplog.at_level(logging.INFO, "pathmix"):
        found, functions = fitted(walk, Y)
    assert "Of another version. It is written down instead." in caplog.text
    assert any(not function.is_recipe for function in functions)
    assert found == bits(pathmix.SDVI(walk, **FEW).run(0, Y))


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_answers_are_of_the_types_that_were_told(precision):
    """Otherwise every function would be traced twice."""
    found, functions = fitted(clipped, Y, precision=precision)
    assert functions and all(function.is_recipe for function in functions)
    assert found == bits(pathmix.SDVI(clipped, precision=precision, **FEW).run(0, Y))


@pytest.mark.usefixtures("engine")
def test_a_recipe_that_tells_other_types_is_not_read():
    def told(shape):
        request = Request("f", _doubled, (), np.arange(3.0), types=lambda: jax.ShapeDtypeStruct(shape, float))
        here, executables = Here(), Executables()
        with executables.at_work(Engine("float64"), here):
            (answer,) = executables.answer([request])
        assert np.array_equal(answer, [0, 2, 4])
        return [function.is_recipe for function in here.given]

    assert told((3,)) == [True]
    assert told((4,)) == [True, False]


def _doubled():
    return _double


def _double(common, fixed, moving):
    return 2 * moving


# As if they were a part of pathmix.
_doubled.__module__ = _double.__module__ = "pathmix.engine.members"


@pytest.mark.usefixtures("engine")
def test_settings_of_jax_travel():
    def squared(settings):
        with recipes._set(settings):
            return str(jax.make_jaxpr(lambda a: a @ a)(jnp.ones((2, 2))))

    with jax.default_matmul_precision("highest"):
        settings = recipes._settings()
    assert "HIGHEST" in squared(settings) and "HIGHEST" not in squared(recipes._settings())


@pytest.mark.usefixtures("engine")
def test_graphs_leave_their_numbers_and_keep_their_structure():
    graph = Graph.of(jax.make_jaxpr(lambda x: jax.nn.relu(x) * np.arange(1_000.0) + 0.5)(1.0))
    content = recipes._pickled(graph)
    assert len(content) < 4_000
    found = pickle.loads(content)
    assert found.structure == graph.structure
    slope = jax.grad(lambda x: found(graph.consts, [x])[0].sum())(2.0)
    assert slope == np.arange(1_000.0).sum()


@pytest.mark.usefixtures("engine")
def test_derivatives_of_derivatives_are_told_apart():
    graph = Graph.of(jax.make_jaxpr(lambda x: jax.nn.softplus(x))(1.0))
    found = pickle.loads(recipes._pickled(graph))

    def value(x):
        return found(graph.consts, [x])[0]

    assert jax.grad(value)(0.3) == jax.grad(jax.nn.softplus)(0.3)
    with pytest.raises(NotDataError, match="a derivative of a derivative"):
        jax.grad(jax.grad(value))(0.3)


@pytest.mark.usefixtures("engine")
def test_functions_with_a_backward_pass_of_their_own_have_no_recipe():
    @jax.custom_vjp
    def cut(x):
        return x

    cut.defvjp(lambda x: (x, None), lambda _, change: (jnp.clip(change, -1, 1),))
    graph = Graph.of(jax.make_jaxpr(lambda x: cut(x) ** 2)(1.0))
    with pytest.raises(NotDataError, match="a backward pass of its own"):
        recipes._pickled(graph)
