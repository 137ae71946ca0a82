"""Parameters of distributions outside of what these allow: a negative scale, a probability above one.

Libraries check them when a distribution is made, if they are asked to; that looks at random values too, so it
is off while programs run. Here, parameters that are known are checked once for each path, and those that
depend on random values where prior runs have them.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from pathmix.errors import InvalidParameterError
from pathmix.program.source import Source

_SLACK = 1e-6  # of bounds on both sides: rounding takes probabilities across them
_SIMPLEX_SLACK = 1e-3  # of a sum that should be one; libraries normalise, or are off by no more than this
_STRICT = ("_Positive", "_SoftplusPositive", "_GreaterThan", "_LessThan")


class Bounds(NamedTuple):
    """What a constraint asks."""

    lower: Any
    upper: Any
    is_strict: bool
    is_simplex: bool

    @classmethod
    def of(cls, constraint: Any) -> "Bounds":
        lower, upper = (getattr(constraint, end, None) for end in ("lower_bound", "upper_bound"))
        return cls(lower, upper, type(constraint).__name__ in _STRICT, _is_simplex(constraint))

    def hold(self, value: Any) -> Any:
        """For a number, or each element of an array."""
        lower, upper = self.lower, self.upper
        if lower is not None and upper is not None:
            return (value >= lower - _SLACK) & (value <= upper + _SLACK)
        if lower is not None:
            return value > lower if self.is_strict else value >= lower
        return value < upper if self.is_strict else value <= upper


_by_class: WeakKeyDictionary[type, tuple[tuple[str, Any, Bounds], ...]] = WeakKeyDictionary()


class Parameter(NamedTuple):
    """A parameter of a distribution, or of one inside it, with its constraint."""

    distribution: str
    name: str
    value: Any
    constraint: Any
    bounds: Bounds

    def bad(self, value: np.ndarray) -> np.ndarray:
        """Which elements (or vectors, of a simplex) violate the constraint."""
        with np.errstate(all="ignore"):
            if self.bounds.is_simplex:
                return np.any(value < -_SLACK, axis=-1) | (np.abs(value.sum(axis=-1) - 1) > _SIMPLEX_SLACK)
            return ~np.asarray(self.bounds.hold(value))

    def allows(self, value: np.ndarray) -> bool:
        """Whether no element is bad."""
        if value.ndim == 0 and not self.bounds.is_simplex:  # an array would take longer
            return bool(self.bounds.hold(value.item()))
        return not self.bad(_distinct(value)).any()

    def said(self, site: str, source: Source) -> str:
        return f"The {self.name} of {self.distribution} at the site {site!r} at {source}"

    def outside(self, site: str, source: Source) -> str:
        return f"{self.said(site, source)} was outside of {self.constraint!r}"


def parameters(fn: Any, depth: int = 3) -> Iterator[Parameter]:
    """The parameters that can be checked by themselves, those of distributions inside included."""
    attributes = getattr(fn, "__dict__", {})
    for name, constraint, bounds in _checkable(fn):
        if (value := attributes.get(name)) is not None:
            yield Parameter(type(fn).__name__, name, value, constraint, bounds)
    for inner in attributes.values() if depth else ():
        for part in inner if isinstance(inner, (list, tuple)) else (inner,):
            if hasattr(part, "arg_constraints"):
                yield from parameters(part, depth - 1)


def _checkable(fn: Any) -> tuple[tuple[str, Any, Bounds], ...]:
    """Names of parameters with simple constraints."""
    constraints = getattr(fn, "arg_constraints", {})
    if getattr(type(fn), "arg_constraints", None) is not constraints:  # those of one object
        return tuple(_simple(constraints))
    found = _by_class.get(type(fn))
    if found is None:
        found = _by_class[type(fn)] = tuple(_simple(constraints))
    return found


def _simple(constraints: dict[str, Any]) -> Iterator[tuple[str, Any, Bounds]]:
    for name, constraint in constraints.items():
        while hasattr(constraint, "base_constraint"):
            constraint = constraint.base_constraint
        bounds = Bounds.of(constraint)
        ends = (bounds.lower, bounds.upper)
        if any(isinstance(end, (int, float)) for end in ends) or bounds.is_simplex:  # others may be random
            yield name, constraint, bounds


def check_known(parameter: Parameter, value: np.ndarray, site: str, source: Source) -> None:
    """Refuse a value that depends on no random one and cannot be."""
    bad = parameter.bad(np.asarray(value))
    if np.any(bad):
        raise invalid(parameter, np.asarray(value), bad, site, source)


def invalid(
    parameter: Parameter, value: np.ndarray, bad: np.ndarray, site: str, source: Source
) -> InvalidParameterError:
    found = value[bad]
    shown = f"{float(found.ravel()[0]):g}" if not parameter.bounds.is_simplex else f"{found[0]}"
    many = f" (in {int(bad.sum())} of {bad.size} elements)" if bad.size > 1 else ""
    return InvalidParameterError(
        f"{parameter.said(site, source)} is {shown}{many}, which is outside of {parameter.constraint!r}. "
        "Check what the distribution is given; exp or softplus make a number positive."
    )


def _distinct(value: np.ndarray) -> np.ndarray:
    """Without the repetitions of what was broadcast to a batch; the last axis stays."""
    if not value.size or 0 not in value.strides[:-1]:
        return value
    return value[tuple([0 if stride == 0 else slice(None) for stride in value.strides[:-1]])]


def _is_simplex(constraint: Any) -> bool:
    return "implex" in type(constraint).__name__
