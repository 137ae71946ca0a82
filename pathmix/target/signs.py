"""Signs of the values in a graph, as far as its operations tell: most switches of densities never flip.

A scale is positive, so nothing happens where one divides by it. Rules are for all elements of an array at
once; what has no rule here may have any sign.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from pathmix.doors.jax import Jaxpr, Literal, literal
from pathmix.program.dependence import callee, forward, opened


class Sign(NamedTuple):
    """What all elements of an array are known to be: zeros are both, and NaN is no number."""

    not_negative: bool
    not_positive: bool
    is_number: bool = True

    @property
    def known(self) -> bool:
        return self.not_negative or self.not_positive


ANY, NOT_NEGATIVE, UNKNOWN = Sign(False, False), Sign(True, False), Sign(False, False, False)


def sign_between(lower: Any, upper: Any) -> Sign:
    """The sign of what lies between bounds."""
    return Sign(bool(np.all(np.asarray(lower) >= 0)), bool(np.all(np.asarray(upper) <= 0)))


def sign_at(value: Any) -> Sign:
    """The sign of an array."""
    array = np.asarray(value)
    if array.size == 0 or array.dtype.kind not in "fiub":
        return UNKNOWN
    low, high = array.min(), array.max()  # NaN, if there is one
    return Sign(bool(low >= 0), bool(high <= 0), bool(np.isfinite(low) and np.isfinite(high)))


def signs(jaxpr: Jaxpr, inputs: Sequence[Sign]) -> dict[Any, Sign]:
    """The sign of every variable, given those of the inputs."""
    return forward(jaxpr, inputs, sign_of, _results)


def sign_of(found: dict[Any, Sign], atom: Any) -> Sign:
    if isinstance(atom, Literal):
        return sign_at(literal(atom))
    return found.get(atom, UNKNOWN)


def compared(name: str, left: Sign, right: Sign) -> bool:
    """Whether signs decide a comparison; none with NaN is true."""
    if not (left.is_number and right.is_number):
        return False
    below = left.not_positive and right.not_negative
    above = left.not_negative and right.not_positive
    return {"lt": above, "ge": above, "gt": below, "le": below}.get(name, False)


def _results(eqn: Any, operands: list[Sign]) -> list[Sign]:
    inner = callee(eqn)
    if inner is not None:
        found = signs(opened(inner), operands)
        return [sign_of(found, atom) for atom in opened(inner).outvars]
    name, kinds = eqn.primitive.name, {np.dtype(atom.aval.dtype).kind for atom in eqn.outvars}
    if not kinds <= set("fiub") or any(atom.aval.dtype.kind == "c" for atom in eqn.invars):
        return [UNKNOWN] * len(eqn.outvars)
    if kinds <= set("ub"):
        return [NOT_NEGATIVE] * len(eqn.outvars)
    rule = _RULES.get(name)
    if rule is None or (name == "gather" and eqn.params["fill_value"] is not None):
        return [UNKNOWN] * len(eqn.outvars)
    is_number = all(x.is_number for x in operands) and (
        name in _ALWAYS_NUMBERS or (name == "sqrt" and operands[0].not_negative)
    )
    if name == "integer_pow":
        found = NOT_NEGATIVE if eqn.params["y"] % 2 == 0 else operands[0]
        return [found._replace(is_number=is_number and eqn.params["y"] > 0)]
    return [rule(*operands)._replace(is_number=is_number)] * len(eqn.outvars)


def _opposite(x: Sign) -> Sign:
    return Sign(x.not_positive, x.not_negative)


def _both(*signs: Sign) -> Sign:
    return Sign(all(x.not_negative for x in signs), all(x.not_positive for x in signs))


def _product(x: Sign, y: Sign) -> Sign:
    alike = (x.not_negative and y.not_negative) or (x.not_positive and y.not_positive)
    unlike = (x.not_negative and y.not_positive) or (x.not_positive and y.not_negative)
    return Sign(alike, unlike)


def _larger(x: Sign, y: Sign) -> Sign:
    return Sign(x.not_negative or y.not_negative, x.not_positive and y.not_positive)


_NEVER_NEGATIVE = ("exp", "exp2", "logistic", "square", "abs", "sqrt", "rsqrt", "erfc", "cosh")
_SAME = (
    *("tanh", "sinh", "asinh", "atan", "erf", "cbrt", "expm1", "log1p"),
    *("reshape", "broadcast_in_dim", "squeeze", "expand_dims", "transpose", "rev", "slice", "gather"),
    *("dynamic_slice", "reduce_sum", "reduce_max", "reduce_min", "cumsum"),
    *("convert_element_type", "reduce_precision", "stop_gradient", "copy"),
)
_RULES: dict[str, Callable[..., Sign]] = {
    **dict.fromkeys(_NEVER_NEGATIVE, lambda *_: NOT_NEGATIVE),
    **dict.fromkeys(_SAME, lambda x, *_: x),
    **dict.fromkeys(("add", "add_any", "concatenate"), _both),
    **dict.fromkeys(("mul", "div", "dot_general"), _product),
    "neg": _opposite,
    "sub": lambda x, y: _both(x, _opposite(y)),
    "max": _larger,
    "min": lambda x, y: _opposite(_larger(_opposite(x), _opposite(y))),
    "integer_pow": lambda x: x,
    "pow": lambda x, _: NOT_NEGATIVE if x.not_negative else ANY,
    "select_n": lambda _, *cases: _both(*cases),
}
# Of finite numbers that are not so large that results overflow. A quotient may be 0 / 0.
_ALWAYS_NUMBERS = (
    *(
        "exp",
        "exp2",
        "logistic",
        "square",
        "abs",
        "erfc",
        "cosh",
        "tanh",
        "sinh",
        "asinh",
        "atan",
        "erf",
        "cbrt",
    ),
    *("expm1", "neg", "add", "add_any", "sub", "mul", "max", "min", "dot_general", "select_n", "concatenate"),
    *("reshape", "broadcast_in_dim", "squeeze", "expand_dims", "transpose", "rev", "slice", "dynamic_slice"),
    *("reduce_sum", "reduce_max", "reduce_min", "cumsum", "integer_pow"),
    *("convert_element_type", "reduce_precision", "stop_gradient", "copy"),
)
