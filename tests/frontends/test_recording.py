"""A recorded run computes what decisions need, once for a whole batch, and its trace is the replay."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy import stats

from pathmix.discovery.steps import settled_by_graph, settled_of
from pathmix.doors.jax import captured, computed_by, operands
from pathmix.errors import HiddenRandomnessError
from pathmix.frontends import tree
from pathmix.frontends.numpyro import lazily, operations
from pathmix.frontends.numpyro.record import record
from pathmix.frontends.recognise import bind
from pathmix.program.seeds import Seed
from tests.paths import discover


def subsets(y):
    mean = 0.0
    for j in range(4):
        if numpyro.sample(f"in{j}", dist.Bernoulli(0.5)):
            mean = mean + numpyro.sample(f"b{j}", dist.Normal(j, 1.0))
    numpyro.sample("y", dist.Normal(mean, 1.0), obs=y)


def mixed():
    """Decisions on discrete and continuous sites, and draws that depend on both."""
    k = numpyro.sample("k", dist.Poisson(1.5))
    total = 0.0
    for i in range(int(k)):
        total = total + numpyro.sample(f"x{i}", dist.Gamma(2.0, 1.0 + k))
        if total > 0.7:
            break
    z = numpyro.sample("z", dist.Normal(total, 1.0))
    if z * 2 < total:
        numpyro.sample("w", dist.Beta(2.0, jnp.exp(z)))


def test_a_path_costs_one_run_of_the_program():
    calls = []

    def model(y):
        calls.append(1)
        subsets(y)

    found = discover(model, 1.0, samples=500)
    assert found.runs == len(found.paths) == 16
    # One run to recognise the library, six to see that the first two repeat themselves, and one more for each
    # path with a new turn: at most one for either side of the decision, and the first.
    assert len(calls) <= 16 + 1 + 6 + 3


def test_what_only_the_likelihood_needs_is_never_computed():
    computed = []

    def costly(z):
        computed.append(1)
        return z

    def model(y):
        z = numpyro.sample("z", dist.Normal(0.0, 1.0))
        mean = jax.pure_callback(costly, jax.ShapeDtypeStruct((), z.dtype), z, vmap_method="expand_dims")
        if z > 0:
            numpyro.sample("w", dist.Normal(0.0, 1.0))
        numpyro.deterministic("mean", mean)
        numpyro.sample("y", dist.Normal(mean, jnp.exp(mean)), obs=y)

    found = discover(model, 1.0, samples=100)
    assert len(found.paths) == 2 and not computed


@pytest.mark.usefixtures("engine")
def test_what_a_decision_needs_is_computed_once_for_the_batch():
    sizes = []

    def look(z):
        sizes.append(np.shape(z))
        return z

    def model():
        z = numpyro.sample("z", dist.Normal(0.0, 1.0))
        seen = jax.pure_callback(look, jax.ShapeDtypeStruct((), z.dtype), z, vmap_method="expand_dims")
        if seen > 0:
            numpyro.sample("w", dist.Normal(0.0, 1.0))
        if seen > 1:
            numpyro.sample("v", dist.Normal(0.0, 1.0))

    program = bind(model)
    found = list(program.frontend.explore(program, Seed.of(0), np.ones(64, bool)))
    assert len(found) == 3
    # The second path takes up where the first one left off; the third decides nothing new on the way there.
    assert sizes[0] == (64,) and len(sizes) <= 3


@pytest.mark.usefixtures("engine")
def test_runs_are_explained_as_if_each_were_alone():
    program, count = bind(mixed), 64
    seeds = Seed.of(3).batch(count)
    explained = np.zeros(count, int)
    for batch_run in program.frontend.explore(program, Seed.of(3), np.ones(count, bool)):
        explained += batch_run.followed
        assert np.all(batch_run.inside[batch_run.followed])
        for row in np.flatnonzero(batch_run.followed):
            alone = record(program, seeds.rows(np.array([row])), 0)
            assert alone.path == batch_run.path
            for name, values in alone.values.items():
                np.testing.assert_allclose(values[0], batch_run.values[name][row], rtol=1e-12)
    np.testing.assert_array_equal(explained, 1)


@pytest.mark.usefixtures("engine")
def test_a_batch_that_does_not_fit_is_divided(monkeypatch):
    program, wanted = bind(mixed), np.arange(100) % 5 > 0
    whole = list(program.frontend.explore(program, Seed.of(1), wanted))
    monkeypatch.setattr(lazily, "_MOST_BYTES", 8 * 40)
    parts = list(program.frontend.explore(program, Seed.of(1), wanted))
    assert sum(run.followed & wanted for run in parts).tolist() == wanted.astype(int).tolist()
    for run in whole:
        same = [part for part in parts if part.path == run.path]
        together = np.any([part.followed for part in same], axis=0)
        np.testing.assert_array_equal(together & wanted, run.followed & wanted)
        for part in same:
            for name, values in part.values.items():
                np.testing.assert_allclose(values[part.followed], run.values[name][part.followed], rtol=1e-12)


@pytest.mark.usefixtures("engine")
def test_little_memory_only_costs_time(monkeypatch):
    program, wanted = bind(mixed), np.ones(64, bool)
    found = [run.path for run in program.frontend.explore(program, Seed.of(1), wanted)]
    monkeypatch.setattr(tree, "_MOST_BYTES", 0)
    monkeypatch.setattr(lazily, "_KEPT_BYTES", 0)
    assert [run.path for run in program.frontend.explore(program, Seed.of(1), wanted)] == found


DRAWN = {
    "normal": (lambda: dist.Normal(1.0, 2.0), stats.norm(1, 2)),
    "gamma": (lambda: dist.Gamma(0.7, 2.0), stats.gamma(0.7, scale=0.5)),
    "beta": (lambda: dist.Beta(2.0, 3.0), stats.beta(2, 3)),
    "transformed": (lambda: dist.LogNormal(0.3, 0.5), stats.lognorm(0.5, scale=np.exp(0.3))),
}


@pytest.mark.parametrize("name", DRAWN)
def test_draws_follow_their_distribution(name):
    """A right sampler fails once in ten thousand seeds."""
    make, truth = DRAWN[name]

    def model():
        numpyro.sample("a", make())
        numpyro.sample("b", make())

    (path,) = discover(model, samples=1_000, seed=2).paths
    assert all(stats.kstest(path.draws[site], truth.cdf).pvalue > 1e-4 for site in "ab")
    assert abs(stats.pearsonr(path.draws["a"], path.draws["b"])[0]) < 0.13


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("model", [mixed, lambda: subsets(0.5)])
def test_the_trace_of_a_run_is_its_replay(model):
    program = bind(model)
    for run in program.frontend.explore(program, Seed.of(0), np.ones(32, bool)):
        carried = program.frontend.replay(program, run)
        again = program.frontend.replay(program, dataclasses.replace(run, trace=None))
        assert str(carried.graph.jaxpr) == str(again.graph.jaxpr)
        for one, other in zip(carried.graph.consts, again.graph.consts, strict=True):
            np.testing.assert_array_equal(one, other)
        # What the run saw to be settled, the graph says too.
        told, by_graph = settled_of(carried), settled_by_graph(carried)
        assert told.decisions == by_graph.decisions
        for one, other in zip(told.log_probabilities, by_graph.log_probabilities, strict=True):
            assert one == (None if other is None else pytest.approx(other, rel=1e-12))


def test_a_prefix_leads_to_one_place():
    known = tree.Tree()
    first = known.walk()
    first.take(first.site("x"))
    first.look("bool")
    second = known.walk()
    second.take(second.site("x"))
    with pytest.raises(HiddenRandomnessError, match="drew the site 'y'"):
        second.site("y")


SPECIAL = np.array([0.0, -0.0, 1.5, -2.5, np.nan, np.inf, -np.inf, 1e300, -1e20, 2.0**63, 0.1])
NUMBERS = {
    "add": (jax.lax.add, 2), "sub": (jax.lax.sub, 2), "mul": (jax.lax.mul, 2), "neg": (jax.lax.neg, 1),
    "lt": (jax.lax.lt, 2), "le": (jax.lax.le, 2), "gt": (jax.lax.gt, 2), "ge": (jax.lax.ge, 2),
    "eq": (jax.lax.eq, 2), "ne": (jax.lax.ne, 2), "abs": (jax.lax.abs, 1), "floor": (jax.lax.floor, 1),
    "ceil": (jax.lax.ceil, 1), "square": (jax.lax.square, 1), "is_finite": (jax.lax.is_finite, 1),
    "convert_element_type": (lambda x: jax.lax.convert_element_type(x, np.int64), 1),
    "select_n": (lambda x, y: jax.lax.select(x > y, x, y), 2),
    "reshape": (lambda x: jnp.reshape(x, (1, 1)), 1),
    "squeeze": (lambda x: jax.lax.squeeze(jnp.reshape(x, (1, 1)), (0,)), 1),
    "and": (lambda x, y: (x > 0) & (y > 0), 2), "or": (lambda x, y: (x > 0) | (y > 0), 2),
    "not": (lambda x: ~(x > 0), 1), "scalar with vector": (lambda x: x * jnp.asarray([1.0, 2.0, 3.0]), 1),
    "scalar choice": (lambda x, y: jax.lax.select(x > y, np.arange(2.0), np.ones(2)), 2),
}  # fmt: skip


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("name", NUMBERS)
def test_numpy_computes_what_xla_computes(name, monkeypatch):
    function, count = NUMBERS[name]
    grid = [column.ravel() for column in np.meshgrid(*[SPECIAL] * count)]
    expected = jax.vmap(function)(*grid)

    def compiled(*_):
        raise AssertionError("not by NumPy")

    seen = []

    def traced(*inputs):
        result = function(*inputs)
        rows = {id(tracer): value for tracer, value in zip(inputs, grid, strict=True)}
        seen.append(_values(result, rows))
        return result

    monkeypatch.setattr(operations, "_compiled", compiled)
    jax.make_jaxpr(traced)(*SPECIAL[:count])
    np.testing.assert_array_equal(seen[0], expected)


def _values(tracer, rows):
    """What a tracer stands for, from the values of the trace's inputs."""
    if id(tracer) in rows:
        return rows[id(tracer)]
    equation = computed_by(tracer)
    if equation is None:
        return np.asarray(captured(tracer))
    inputs = [
        operations.Rows(_values(x, rows), computed_by(x) is not None or id(x) in rows)
        for x in operands(equation)
    ]
    return operations.compute(equation, inputs)[0].value
