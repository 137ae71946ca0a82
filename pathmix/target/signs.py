"""Signs of the values in a graph, as far as its operations tell: most switches of densities never flip.

A scale is positive, so nothing happens where one divides by it. Rules are for all elements of an array at
once; what has no rule here may have any sign.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from pathmix.doors.jax import Jaxpr, Literal, literal
from pathmix.program.dependence import callee, opened


class Sign(NamedTuple):
    """What all elements of an array are known to be. Zeros are both."""

    not_negative: bool
    not_positive: bool

    @property
    def known(self) -> bool:
        return self.not_negative or self.not_positive


ANY, NOT_NEGATIVE = Sign(False, False), Sign(True, False)


def sign_between(lower: Any, upper: Any) -> Sign:
    """The sign of what lies between bounds."""
    return Sign(sign_at(lower).not_negative, sign_at(upper).not_positive)


def sign_at(value: Any) -> Sign:
    """The sign of an array."""
    array = np.asarray(value)
    if array.size == 0 or array.dtype.kind not in "fiub":
        return ANY
    return Sign(bool(array.min() >= 0), bool(array.max() <= 0))  # neither, if some are no numbers


def signs(jaxpr: Jaxpr, inputs: Sequence[Sign]) -> dict[Any, Sign]:
    """The sign of every variable, given those of the inputs."""
    found: dict[Any, Sign] = dict(zip(jaxpr.invars, inputs, strict=True))
    for eqn in jaxpr.eqns:
        operands = [sign_of(found, atom) for atom in eqn.invars]
        found.update(zip(eqn.outvars, _results(eqn, operands), strict=True))
    return found


def sign_of(found: dict[Any, Sign], atom: Any) -> Sign:
    if isinstance(atom, Literal):
        return sign_at(literal(atom))
    return found.get(atom, ANY)


def compared(name: str, left: Sign, right: Sign) -> bool:
    """Whether signs decide a comparison."""
    below = left.not_positive and right.not_negative
    above = left.not_negative and right.not_positive
    return {"lt": above, "ge": above, "gt": below, "le": below}.get(name, False)


def _results(eqn: Any, operands: list[Sign]) -> list[Sign]:
    inner = callee(eqn)
    if inner is not None:
        found = signs(opened(inner), operands)
        return [sign_of(found, atom) for atom in opened(inner).outvars]
    name = eqn.primitive.name
    if any(np.issubdtype(atom.aval.dtype, np.complexfloating) for atom in (*eqn.invars, *eqn.outvars)):
        return [ANY] * len(eqn.outvars)
    if name == "integer_pow":
        return [NOT_NEGATIVE if eqn.params["y"] % 2 == 0 else operands[0]]
    if name == "gather" and eqn.params["fill_value"] is not None:
        return [ANY]
    rule = _RULES.get(name)
    return [ANY if rule is None else rule(*operands)] * len(eqn.outvars)


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
    "pow": lambda x, _: NOT_NEGATIVE if x.not_negative else ANY,
    "select_n": lambda _, *cases: _both(*cases),
}
