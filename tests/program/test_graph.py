"""Which graphs may share compiled code."""

import functools
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pathmix.doors.jax import Primitive
from pathmix.program.graph import Graph


def plain(array):
    return lambda x: x * array + 2.0


def remat(array):
    return lambda x: jax.checkpoint(jax.jit(lambda v: v * array))(x)


def scanned(array):
    return lambda x: jax.lax.scan(lambda c, a: (c * a, None), x, array)[0]


def with_rule(array):
    @jax.custom_jvp
    def f(x):
        return x * 2.0

    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0] * array.sum()))
    return f


def callback(array):
    def f(x):
        return jax.pure_callback(lambda v: v * np.asarray(array), jax.ShapeDtypeStruct((2,), float), x)

    return f


pytestmark = pytest.mark.usefixtures("engine")


@pytest.mark.parametrize("make", [plain, remat, scanned, with_rule, callback])
def test_graphs_that_share_give_each_others_values_and_gradients(make):
    """Equal structures must be interchangeable: run one with what the other captured."""
    one, two = (
        Graph.of(jax.make_jaxpr(make(jnp.asarray(array)))(jnp.ones(2) if make is callback else 1.5))
        for array in (np.array([1.0, 2.0]), np.array([3.0, 5.0]))
    )
    shares = any(const.shape == (2,) for const in one.consts)  # else the array is inside, as a fixed part
    assert (one.structure == two.structure) == shares
    if not shares:
        assert make not in (plain, scanned)
        return
    x = jnp.array(1.5)

    def total(graph, consts, value):
        return jnp.sum(graph(consts, [value])[0])

    for differentiate in (lambda f: f, jax.grad):
        mine = differentiate(functools.partial(total, two, two.consts))(x)
        shared = differentiate(functools.partial(total, one, two.consts))(x)
        np.testing.assert_allclose(shared, mine)


def test_numbers_and_arrays_do_not_matter():
    graphs = [Graph.of(jax.make_jaxpr(lambda x, c=c: jnp.sin(x * c) - c)(1.0)) for c in (2.0, 3.0)]
    assert graphs[0].structure == graphs[1].structure
    other = Graph.of(jax.make_jaxpr(lambda x: jnp.cos(x * 2.0) - 2.0)(1.0))
    assert other.structure != graphs[0].structure


def test_parts_keep_only_what_they_need():
    graph = Graph.of(jax.make_jaxpr(lambda x, y: (x * 2.0, jnp.sin(y) + 3.0))(1.0, 1.0))
    part = graph.outputs([1])
    assert len(part.consts) == 1 and len(part.inputs) == 2
    np.testing.assert_allclose(part(part.consts, [5.0, 1.0])[0], np.sin(1.0) + 3.0)


@dataclass(frozen=True)
class Silent:
    """A parameter whose text does not tell what it is."""

    factor: float

    def __repr__(self):
        return "Silent"


class Opaque:
    __repr__ = Silent.__repr__


@pytest.mark.parametrize("make", [Silent, lambda _: Opaque(), lambda factor: {"nested": (Silent(factor),)}])
def test_parameters_that_are_not_printed_tell_graphs_apart(make):
    primitive = Primitive("silent")
    primitive.def_abstract_eval(lambda x, **_: x)

    def graph(parameter):
        return Graph.of(jax.make_jaxpr(lambda x: primitive.bind(x, parameter=parameter))(1.0))

    one, two = make(1.0), make(2.0)
    assert str(graph(one).jaxpr) == str(graph(two).jaxpr)
    assert graph(one).structure != graph(two).structure
    assert graph(one).structure == graph(one).structure


def test_orders_and_types_tell_graphs_apart():
    functions = [lambda x, y: x - y, lambda x, y: y - x, lambda x, y: (x - y).astype(jnp.float32)]
    structures = {Graph.of(jax.make_jaxpr(function)(1.0, 2.0)).structure for function in functions}
    assert len(structures) == 3
    shapes = {Graph.of(jax.make_jaxpr(jnp.sin)(jnp.zeros(shape))).structure for shape in ((), (1,), (2,))}
    assert len(shapes) == 3
