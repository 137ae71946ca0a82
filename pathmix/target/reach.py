"""Reach: whether some elements of sites can change a graph's outputs, told by what its operations do.

Operations that work element by element pass a touch on to the same elements, a `where` with a known
predicate only from the side that it takes, `and` and `or` only where the other side does not settle them.
Whatever else there is passes it on to all of its results: then the answer "reached" may be too much.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from pathmix.regions.expressions import Expression

_ELEMENTWISE = frozenset([
    "add", "add_any", "sub", "mul", "div", "rem", "max", "min", "pow", "integer_pow", "square", "neg",
    "sign", "abs", "floor", "ceil", "round", "exp", "exp2", "log", "log1p", "expm1", "sqrt", "rsqrt",
    "cbrt", "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh",
    "acosh", "atanh", "logistic", "erf", "erfc", "erf_inv", "lgamma", "digamma", "polygamma", "igamma",
    "igammac", "igamma_grad_a", "regularized_incomplete_beta", "bessel_i0e", "bessel_i1e", "zeta",
    "random_gamma_grad", "eq", "ne", "lt", "le", "gt", "ge", "and", "or", "not", "xor", "is_finite",
    "nextafter", "clamp", "convert_element_type", "reduce_precision", "stop_gradient", "real", "imag",
    "conj", "complex", "copy", "copy_p",
])  # fmt: skip
_DECIDED_BY = {"or": True, "and": False}  # and the truth value that settles them
_MOVING = frozenset([
    "reshape", "squeeze", "expand_dims", "broadcast_in_dim", "slice", "transpose", "rev", "concatenate",
    "pad", "gather", "dynamic_slice",
])  # fmt: skip
_REDUCING = frozenset([
    "reduce_sum", "reduce_max", "reduce_min", "reduce_prod", "reduce_and", "reduce_or", "argmax",
    "argmin",
])  # fmt: skip


class Reach(NamedTuple):
    reached: bool
    exact: bool  # else "reached" may be too much


def reach(outputs: Sequence[Expression], touched: Mapping[int, np.ndarray]) -> Reach:
    """From the touched elements of some sites, by number, to any element of the outputs."""
    found: dict[int, np.ndarray] = {}
    exact = True
    left = list(outputs)
    while left:  # without recursion: long loops make deep expressions
        node = left[-1]
        waiting = [child for child in node.inputs if id(child) not in found]
        if waiting:
            left += waiting
            continue
        left.pop()
        if id(node) not in found:
            found[id(node)], is_exact = _passed_on(node, [found[id(child)] for child in node.inputs], touched)
            exact = exact and is_exact
    return Reach(any(found[id(output)].any() for output in outputs), exact)


def _passed_on(
    node: Expression, inputs: list[np.ndarray], touched: Mapping[int, np.ndarray]
) -> tuple[np.ndarray, bool]:
    """The touched elements of a value, given those of its inputs."""
    if node.site is not None:
        return touched.get(node.site, np.zeros(node.shape, bool)), True
    if not any(part.any() for part in inputs):
        return np.zeros(node.shape, bool), True
    if node.operator == "select_n":
        return _selected(node, inputs), True
    if node.operator in _DECIDED_BY:
        inputs = [
            part & ~_decided(node, other) for part, other in zip(inputs, node.inputs[::-1], strict=True)
        ]
    if node.operator in _ELEMENTWISE:
        return np.broadcast_to(np.any(np.broadcast_arrays(*inputs), axis=0), node.shape), True
    if node.operator in _REDUCING:
        return np.asarray(inputs[0].any(axis=tuple(node.params["axes"]))), True
    if node.operator in _MOVING and not any(child.free for child in node.inputs[_data(node) :]):
        values = [jnp.asarray(part, float) for part in inputs[: _data(node)]]
        moved = node.bind(*values, *(child.value() for child in node.inputs[_data(node) :]))
        return np.asarray(moved) != 0, True
    # A computed index may choose any element.
    return np.ones(node.shape, bool), node.operator in _MOVING


def _decided(node: Expression, other: Expression) -> np.ndarray:
    """Where one operand, if it is known, settles the result whatever the other is."""
    if other.free or other.dtype != bool:
        return np.zeros(node.shape, bool)
    return np.broadcast_to(np.asarray(other.value()) == _DECIDED_BY[node.operator], node.shape)


def _data(node: Expression) -> int:
    """How many of the inputs are moved; the others say where to."""
    return len(node.inputs) if node.operator == "concatenate" else 2 if node.operator == "pad" else 1


def _selected(node: Expression, inputs: list[np.ndarray]) -> np.ndarray:
    which, *cases = inputs
    taken = np.any(np.broadcast_arrays(*cases), axis=0)
    if not node.inputs[0].free:
        number = np.broadcast_to(np.asarray(node.inputs[0].value()).astype(int), node.shape)
        taken = np.choose(number, [np.broadcast_to(case, node.shape) for case in cases])
    return taken | np.broadcast_to(which, node.shape)
