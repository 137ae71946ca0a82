"""Slopes put together from those of operations are the ones that JAX gives for the whole."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.linalg import solve_triangular
from jax.scipy.special import logsumexp

from pathmix.program import slopes
from pathmix.program.graph import Graph

X = np.array([0.3, -1.2, 0.7, 2.1])
MATRIX = np.linspace(0.1, 1.6, 16).reshape(4, 4)


def covariance(x):
    return jnp.exp(-((x[:, None] - x) ** 2)) + 0.1 * jnp.eye(4)


def normal(x):
    factor = jnp.linalg.cholesky(covariance(x))
    whitened = solve_triangular(factor, jnp.sin(x), lower=True)
    return -0.5 * whitened @ whitened - jnp.sum(jnp.log(jnp.diagonal(factor)))


def on_the_host(x):
    return jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x, vmap_method="sequential")


@jax.custom_vjp
def clipped(x):
    return jnp.sum(x**2)


clipped.defvjp(lambda x: (clipped(x), x), lambda x, change: (change * jnp.clip(x, -1, 1),))


FUNCTIONS = {
    "arithmetic": lambda x: jnp.sum(x * jnp.exp(-x) / (1 + x**2) - x),
    "the same input twice": lambda x: x @ x + jnp.sum(x[::-1] * x),
    "products of matrices": lambda x: x @ MATRIX @ x,
    "a normal with a covariance": normal,
    "a solve": lambda x: jnp.sum(jnp.linalg.solve(covariance(x), x)),
    "an index": lambda x: x[jnp.array([0, 0, 3])] @ jnp.arange(3.0),
    "a write": lambda x: jnp.sum(jnp.zeros(6).at[jnp.array([1, 1, 4, 5])].add(x**3) ** 2),
    "a choice": lambda x: jnp.sum(jnp.where(x > 0, jnp.sin(x), x**3)),
    "order": lambda x: jnp.sort(x) @ jnp.arange(4.0) + jnp.max(x) + x[jnp.argmin(x)] ** 2,
    "cumulative sums": lambda x: jnp.sum(jnp.cumsum(x) * jnp.cumprod(x)),
    "derivatives of its own": lambda x: logsumexp(x) + jnp.sum(jax.nn.softplus(x)) + clipped(x),
    "a gradient stopped": lambda x: jnp.sum(jax.lax.stop_gradient(x) * x),
    "what has no slope, of a gradient stopped": lambda x: jnp.sum(x * on_the_host(jax.lax.stop_gradient(x))),
    "steps": lambda x: jnp.sum(jnp.floor(x) * x + jnp.sign(x) * jnp.round(x)),
    "complex numbers": lambda x: jnp.sum(jnp.abs(jnp.fft.rfft(x)) ** 2 * jnp.arange(3)),
    "whole numbers on the way": lambda x: jnp.sum(x * jnp.floor(x).astype(int)),
    "a loop": lambda x: jax.lax.scan(lambda s, v: (jnp.sin(s) + v, s * v), 0.5, x)[1].sum(),
    "a branch": lambda x: jax.lax.cond(x[0] > 0, jnp.sum, lambda x: jnp.sum(x**2), x),
    "a call": lambda x: jax.jit(lambda x: jnp.sum(jnp.cos(x)))(x),
    "several results, one used": lambda x: jnp.sum(jnp.linalg.eigh(covariance(x))[0][:2]),
    "nothing": lambda x: jnp.sum(jnp.ones(3)),
    "the input itself": lambda x: x[2],
    "infinite": lambda x: jnp.sum(jnp.where(x > 0, jnp.log(x), 0.0)),
}


@pytest.fixture(autouse=True)
def _precise():
    with jax.enable_x64(True):
        yield


def graph(function):
    return Graph.of(jax.make_jaxpr(lambda x, n: [function(x), function(x) > n, x * 2])(X, 1))


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_slopes_are_those_of_the_whole(function):
    """In values to the last bit, in slopes to rounding; one point at a time, and several."""
    traced = graph(function)

    def ours(x):
        value, _, doubled = traced.with_slope(traced.consts, [x, jnp.asarray(1)])
        return value + doubled[1], value

    def theirs(x):
        return function(x) + 2 * x[1], function(x)

    both = [jax.value_and_grad(one, has_aux=True) for one in (ours, theirs)]
    for call in (lambda f: f(jnp.asarray(X)), lambda f: jax.vmap(f)(jnp.asarray([X, X[::-1]]))):
        ((_, ours_there), our_slope), ((_, theirs_there), their_slope) = (call(one) for one in both)
        np.testing.assert_array_equal(ours_there, theirs_there)
        np.testing.assert_allclose(our_slope, their_slope, rtol=1e-12, atol=1e-14)


def test_what_has_no_slope_has_none_here_either():
    """JAX says so, in its own words."""
    traced = graph(lambda x: jax.lax.while_loop(lambda s: s < 9, lambda s: 2 * s, jnp.sum(x**2)))
    np.testing.assert_array_equal(
        traced.with_slope(traced.consts, [X, 1])[0], traced(traced.consts, [X, 1])[0]
    )
    with pytest.raises(ValueError, match="Reverse-mode differentiation does not work"):
        jax.grad(lambda x: traced.with_slope(traced.consts, [x, 1])[0])(jnp.asarray(X))


def test_each_kind_of_operation_is_differentiated_once():
    slopes._kind.cache_clear()
    misses = []
    for scale in (1.0, 2.0):
        traced = graph(lambda x, scale=scale: jnp.sum(jnp.sin(scale * x) * jnp.sin(x) + jnp.sin(x)))
        jax.make_jaxpr(jax.grad(lambda x, t=traced: t.with_slope(t.consts, [x, 1])[0]))(X)
        misses.append(slopes._kind.cache_info().misses)
    sines_products_sums = 3 + 2 + 2  # where one operand is reached, or both
    assert misses[0] == misses[1] <= sines_products_sums


def test_kinds_of_both_precisions_stay_apart():
    def slope(dtype):
        x = jnp.asarray(X, dtype)
        traced = Graph.of(jax.make_jaxpr(lambda x: [jnp.sum(jnp.cumsum(x)[jnp.array([1, 3])] ** 2)])(x))
        return jax.jit(jax.grad(lambda x: traced.with_slope(traced.consts, [x])[0]))(x)

    found = []
    for wide in (False, True, False):
        with jax.enable_x64(wide):
            found.append(slope(jnp.result_type(float)))
    assert [str(one.dtype) for one in found] == ["float32", "float64", "float32"]
    for one in found:
        np.testing.assert_allclose(one, found[1], rtol=1e-6)
