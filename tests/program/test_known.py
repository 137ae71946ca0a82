"""What NumPy computes of known values is what JAX computes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from pathmix.program.canonical import canonical
from pathmix.program.graph import Graph
from pathmix.program.known import _BY_NUMPY

pytestmark = pytest.mark.usefixtures("engine")

FLOATS = np.array([[0.3, -1.7, 2.5], [0.0, -0.0, 1e300]])
SPECIAL = np.array([np.inf, -np.inf, np.nan, 0.5, -2.5])
WHOLE = np.array([[3, -4, 7], [0, 1, -1]])
UNIT = np.array([0.1, 0.5, 0.9])

FUNCTIONS = {
    **{
        name: lambda f=f: f(FLOATS, FLOATS[::-1])
        for name, f in {
            "add": lax.add, "sub": lax.sub, "mul": lax.mul, "max": lax.max, "min": lax.min, "lt": lax.lt,
            "le": lax.le, "gt": lax.gt, "ge": lax.ge, "eq": lax.eq, "ne": lax.ne, "div": lax.div,
        }.items()
    },
    **{
        f"{name} of special numbers": lambda f=f: f(SPECIAL, SPECIAL[::-1].copy())
        for name, f in {"max": lax.max, "min": lax.min, "lt": lax.lt, "eq": lax.eq, "ne": lax.ne}.items()
    },
    **{
        name: lambda f=f: f(SPECIAL)
        for name, f in {
            "neg": lax.neg, "abs": lax.abs, "exp": lax.exp, "log": lax.log, "log1p": lax.log1p,
            "expm1": lax.expm1, "sqrt": lax.sqrt, "floor": lax.floor, "ceil": lax.ceil, "sin": lax.sin,
            "cos": lax.cos, "tanh": lax.tanh, "logistic": lax.logistic, "erf": lax.erf, "erfc": lax.erfc,
            "is_finite": lax.is_finite, "square": lax.square, "stop_gradient": lax.stop_gradient,
        }.items()
    },
    "lgamma": lambda: lax.lgamma(np.array([0.3, 4.0, 20.5, -1.5])),
    "digamma": lambda: lax.digamma(np.array([0.3, 4.0, 20.5, -1.5])),
    "erf_inv": lambda: lax.erf_inv(np.array([-0.9, 0.0, 0.3, 1.0])),
    "clamp": lambda: lax.clamp(0.2, UNIT, 0.8),
    "integer_pow": lambda: lax.integer_pow(FLOATS, 3),
    "integer_pow of a negative power": lambda: lax.integer_pow(FLOATS, -2),
    "integer_pow of whole numbers": lambda: lax.integer_pow(WHOLE, 3),
    "pow": lambda: lax.pow(UNIT, np.array([2.5, -1.0, 0.0])),
    "whole division": lambda: lax.div(np.array([7, -7]), np.array([2, 2])),
    "whole remainder": lambda: lax.rem(np.array([7, -7]), np.array([3, 3])),
    "bits": lambda: lax.bitwise_or(lax.bitwise_and(WHOLE, 5), lax.bitwise_not(WHOLE)),
    "truths": lambda: lax.bitwise_not(lax.bitwise_and(np.array([True, False]), np.array([True, True]))),
    "to whole numbers": lambda: lax.convert_element_type(jnp.asarray(SPECIAL), jnp.int32),
    "to small ones": lambda: lax.convert_element_type(np.array([300, -5]), jnp.uint8),
    "to truths": lambda: lax.convert_element_type(SPECIAL, jnp.bool_),
    "from truths": lambda: lax.convert_element_type(np.array([True, False]), jnp.int32),
    "select": lambda: lax.select(np.array([True, False, True]), UNIT, -UNIT),
    "select of three": lambda: lax.select_n(np.array([0, 2, 1]), UNIT, -UNIT, 2 * UNIT),
    "broadcast": lambda: lax.broadcast_in_dim(UNIT, (2, 3), (1,)),
    "reshape": lambda: lax.reshape(WHOLE, (3, 2)),
    "reshape in another order": lambda: lax.reshape(WHOLE, (3, 2), (1, 0)),
    "squeeze": lambda: lax.squeeze(UNIT[None, :, None], (0, 2)),
    "expand": lambda: lax.expand_dims(UNIT, (0, 2)),
    "transpose": lambda: lax.transpose(WHOLE, (1, 0)),
    "slice": lambda: lax.slice(WHOLE, (0, 1), (2, 3), (1, 2)),
    "concatenate": lambda: lax.concatenate([WHOLE, WHOLE], 1),
    "sum": lambda: lax.reduce_sum(FLOATS[:1], (1,)),
    "sum of whole numbers": lambda: jnp.sum(np.array([100, 100], np.int8), dtype=jnp.int8),
    "largest": lambda: lax.reduce_max(SPECIAL, (0,)),
    "smallest": lambda: lax.reduce_min(FLOATS, (0, 1)),
    "all and any": lambda: lax.reduce_and(WHOLE > 0, (0,)) | lax.reduce_or(WHOLE > 5, (0,)),
    "with rules": lambda: jax.nn.softplus(FLOATS) + jax.nn.relu(FLOATS) + jax.scipy.special.xlogy(0.0, 0.0),
    "a gather": lambda: jnp.take(UNIT, np.array([2, 0])),
    "random numbers": lambda: jax.random.uniform(jax.random.key(1), (3,)),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_known_values_are_those_of_jax(name):
    expected = jax.jit(FUNCTIONS[name])()
    graph = Graph.of(jax.make_jaxpr(lambda x: [x, FUNCTIONS[name]()])(1.0))
    found = canonical(graph, [None]).graph
    assert not found.jaxpr.eqns
    (const,) = found.consts
    assert const.shape == expected.shape and const.dtype == expected.dtype
    np.testing.assert_allclose(const, expected, rtol=1e-13, atol=1e-300)


def test_every_rule_is_tried():
    text = "".join(str(jax.make_jaxpr(FUNCTIONS[name])()) for name in FUNCTIONS)
    missing = {rule for rule in _BY_NUMPY if f"{rule}[" not in text and f" {rule} " not in text}
    assert missing <= {"add_any", "copy", "expand_dims"}  # no public function gives these
