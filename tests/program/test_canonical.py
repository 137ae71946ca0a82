"""Canonical graphs: they compute what the graphs they come from compute, and are few."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pathmix.program.canonical import canonical
from pathmix.program.graph import Graph

pytestmark = pytest.mark.usefixtures("engine")

X = np.linspace(-1.0, 2.0, 7)


def graph(function, *args):
    return Graph.of(jax.make_jaxpr(function)(*args))


def same_values_and_gradients(function, args, known, **options):
    """The canonical form at the unknown arguments against the function itself."""
    whole = graph(lambda *values: [function(*values)], *args)
    found = canonical(whole, known, **options)
    inputs = [jnp.asarray(args[i]) for i in found.order]

    def original(*free):
        given = list(args)
        for i, value in zip(found.order, free, strict=True):
            given[i] = value
        return function(*given)

    def folded(*free):
        return found.graph(found.graph.consts, free)[0]

    np.testing.assert_allclose(folded(*inputs), original(*inputs), rtol=1e-12)
    numbers = tuple(range(len(inputs)))
    for mine, theirs in zip(
        jax.grad(folded, numbers)(*inputs), jax.grad(original, numbers)(*inputs), strict=True
    ):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)
    return found


FUNCTIONS = {
    "sums of sums": lambda a, b, c: ((a + 1.0) + (b * 2.0 + c)) + (a + (3.0 + b)),
    "a shared sum": lambda a, b, c: (s := a + b) * s + (s + c),
    "nested calls": lambda a, b, c: jax.jit(lambda u: jnp.sin(u) + jax.jit(jnp.cos)(u * c))(a) + b,
    "custom derivatives": lambda a, b, c: jax.nn.softplus(a * c) + jnp.logaddexp(b, 2.0) + jax.nn.relu(a),
    "data": lambda a, b, c: jnp.sum((X * a + X**2 * b + jnp.zeros(7) - c * X**3) ** 2),
    "branches": lambda a, b, c: jax.lax.cond(a > 0, lambda u: u * b, lambda u: u - c, a),
    "loops": lambda a, b, c: jax.lax.scan(lambda s, x: (s * a + x * b, None), c, jnp.asarray(X))[0],
    "a solve": lambda a, b, c: jnp.sum(
        jnp.linalg.solve(jnp.eye(3) * (2 + a**2) + b * c / 9, jnp.arange(3.0))
    ),
    "an input used nowhere": lambda a, b, c: a * 2.0,
    "an output that is known": lambda a, b, c: c * 2.0 + 0.0 * a,
    "both the same": lambda a, b, c: a + a + b * b + (c + c),
    "one term again and again": lambda a, b, c: sum([jnp.sin(a)] * 5, b) + jnp.sin(a) * c,
    "nothing but one term": lambda a, b, c: jnp.sin(a) + jnp.sin(a) + jnp.sin(a),
    "arrays again and again": lambda a, b, c: jnp.sum(sum([jnp.sin(a * X)] * 3) + b * X) + c,
    "almost the same": lambda a, b, c: sum(jnp.sin(a * k) for k in (1.0, 2.0, 1.0, -0.0, 0.0)) * b + c,
    "whole numbers": lambda a, b, c: a ** (2 + 1) + jnp.where(jnp.arange(3) == 1, b, c).sum(),
}


@pytest.mark.parametrize("pinned", [(), (2,), (0, 2)])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_gradients_stay(name, pinned):
    args = (0.4, -0.7, 1.3)
    known = [np.asarray(value) if i in pinned else None for i, value in enumerate(args)]
    found = same_values_and_gradients(FUNCTIONS[name], args, known)
    assert sorted(found.order) == [i for i in range(3) if i not in pinned]
    kept = tuple(i for i in (2, 0, 1) if i not in pinned)
    assert same_values_and_gradients(FUNCTIONS[name], args, known, order=kept).order == kept


def test_what_is_known_is_computed_once():
    data = np.random.default_rng(0).normal(size=(50, 50))

    def function(a, k):
        return jnp.sum(a * jnp.linalg.inv(data @ data.T + k * jnp.eye(50))[0])

    found = canonical(graph(lambda *v: [function(*v)], 1.0, 2.0), [None, np.asarray(2.0)])
    assert {eqn.primitive.name for eqn in found.graph.jaxpr.eqns} <= {
        "mul",
        "reduce_sum",
        "convert_element_type",
    }
    assert found.graph.footprint <= 50 * 8


def test_an_expansion_is_not_kept_as_an_array():
    found = canonical(graph(lambda a: [jnp.sum(a * jnp.ones((300, 300)))], 1.0), [None])
    assert all(const.size < 10 for const in found.graph.consts)


def subset(chosen):
    def density(*b):
        mean = jnp.zeros(7)
        for j, coefficient in zip(chosen, b, strict=True):
            mean = mean + (X ** (j + 1)) * coefficient
        return [-0.5 * jnp.sum((mean - 1.0) ** 2) - sum(0.5 * v**2 for v in b)]

    return canonical(graph(density, *[1.0] * len(chosen)), [None] * len(chosen)).graph.structure


def test_subsets_of_one_size_are_one_structure():
    chosen = [c for size in range(1, 5) for c in itertools.combinations(range(4), size)]
    assert len(chosen) == 15 and len({subset(c) for c in chosen}) == 4


def tosses(heads, tails):
    """The density of a coin's chance after so many tosses, one by one."""

    def density(p):
        terms = [jnp.log(p) for _ in range(heads)] + [jnp.log1p(-p) for _ in range(tails)]
        return [sum(terms, -(p**2))]

    return canonical(graph(density, 0.3), [None]).graph.structure


def test_loops_of_all_lengths_are_one_structure():
    """As long as anything comes again."""
    assert len({tosses(heads, tails) for heads, tails in itertools.product(range(1, 6), repeat=2)}) == 2
    assert tosses(1, 1) != tosses(2, 1) == tosses(1, 2) == tosses(7, 3)


KERNELS = {
    "se": lambda d, a, b: jnp.exp(-((d * a) ** 2)) * b,
    "rq": lambda d, a, b: (1 + (d * a) ** 2) ** (-b),
    "per": lambda d, a, b: jnp.exp(-(jnp.sin(d * a) ** 2) * b),
}


@pytest.mark.parametrize("combine", [jnp.add, jnp.multiply])
def test_the_order_of_terms_and_names_does_not_matter(combine):
    """Sums and products of three kernels in all orders, the parameters in the order of the program."""
    distances = X[:, None] - X[None]
    structures, orders = set(), set()
    for names in itertools.permutations(KERNELS):

        def density(*p, names=names):
            parts = [KERNELS[n](distances, p[2 * i], p[2 * i + 1]) for i, n in enumerate(names)]
            return [jnp.linalg.slogdet(combine(parts[0], combine(parts[1], parts[2])) + jnp.eye(7))[1]]

        found = canonical(graph(density, *[0.5] * 6), [None] * 6)
        structures.add(found.graph.structure)
        orders.add(tuple((names[i // 2], i % 2) for i in found.order))
    # Products are not flattened: in which order they are taken decides what overflows.
    assert len(structures) == (1 if combine is jnp.add else 3)
    assert len(orders) == 1 or combine is jnp.multiply


def test_inputs_of_different_kinds_are_not_exchanged():
    whole = graph(lambda a, b: [a * 2.0 + b * 2.0], 1.0, 1.0)
    plain, swapped = (canonical(whole, [None, None], kinds).order for kinds in (["x", "y"], ["y", "x"]))
    assert plain == swapped[::-1]


def test_similar_graphs_are_told_apart():
    """f(a) + f(a) is not f(a) + f(b), although each term is the same."""
    one = canonical(graph(lambda a, b: [jnp.sin(a) * jnp.sin(a) + 0 * b], 1.0, 1.0), [None, None])
    two = canonical(graph(lambda a, b: [jnp.sin(a) * jnp.sin(b) + 0 * b], 1.0, 1.0), [None, None])
    assert one.graph.structure != two.graph.structure


def test_merged_constants_do_not_depend_on_the_order():
    numbers = [0.1, 0.7, 1e-9, -3.3, 1e5]
    values = set()
    for order in itertools.permutations(numbers):

        def total(a, order=order):
            for number in order:
                a = a + number
            return [a]

        found = canonical(graph(total, 1.0), [None]).graph
        (const,) = found.consts
        values.add(float(const))
    assert len(values) == 1 and values.pop() == pytest.approx(sum(numbers), rel=1e-15)


def test_deep_graphs_need_no_recursion():
    def long(a):
        for i in range(3_000):
            a = jnp.sin(a) + i
        return [a]

    found = canonical(graph(long, 0.1), [None]).graph
    assert len(found.jaxpr.eqns) == 6_000


def test_merged_terms_have_the_shape_of_their_sum():
    """Numbers are added to arrays without a word, so constants of two paths may differ in shape alone."""
    number = graph(lambda z: [2.0 + z * X], 1.0)
    array = graph(lambda z: [2.0 + (X + z * X)], 1.0)
    one, other = (canonical(whole, [None]).graph for whole in (number, array))
    assert one.structure != other.structure
    for whole in (one, other):
        for constant, var in zip(whole.consts, whole.jaxpr.invars, strict=False):
            assert constant.shape == var.aval.shape


def test_what_is_expanded_may_be_used_by_known_and_unknown_alike():
    """A known number, broadcast, both compared (which is folded) and multiplied by something unknown."""

    def function(known, unknown):
        wide = jnp.broadcast_to(known, (5,))
        return jnp.sum(jnp.where(wide == 2.0, 1.0, 3.0)) + jnp.sum(wide * unknown)

    same_values_and_gradients(function, (jnp.asarray(2.0), jnp.asarray(0.3)), [np.asarray(2.0), None])
