"""The numbers inside of a distribution, and its kind: what is left without them."""

from collections.abc import Hashable, Iterator
from functools import lru_cache
from typing import Any

import jax
import numpy as np

from pathmix.doors.jax import Tracer

_LIBRARY = "numpyro.distributions."
_STATIC = (bool, int, str, type(None))
_SMALL = 1_024  # bytes of an array that is looked at as a whole


class UnknownPartError(Exception):
    """A value of which not all that matters can be seen."""


def kind_of(value: Any, leaves: list[Any], *, real: bool = False) -> Hashable:
    """What tells a value's kind; the numbers in it are added to `leaves`.

    Whole numbers are among them only where they stand for `real` ones: others may decide what is done.
    """
    if isinstance(value, Tracer):
        leaves.append(value)
        return value.aval
    if isinstance(value, float) or (type(value) is int and real):
        leaves.append(value)
        return type(value)
    if isinstance(value, (np.ndarray, np.generic, jax.Array)):
        if real or np.issubdtype(value.dtype, np.floating):
            leaves.append(value)
            return (value.shape, value.dtype, getattr(value, "weak_type", False))
        if value.nbytes > _SMALL:
            raise UnknownPartError
        return (value.shape, value.dtype, np.asarray(value).tobytes())
    if isinstance(value, _STATIC):
        return (type(value), value)
    if isinstance(value, (tuple, list)):
        return (type(value), *(kind_of(part, leaves) for part in value))
    if isinstance(value, dict):
        return (type(value), *((kind_of(k, []), kind_of(part, leaves)) for k, part in value.items()))
    if type(value).__module__.startswith(_LIBRARY):
        reals = _real_parameters(type(value))
        parts = vars(value).items()
        return (type(value), *((name, kind_of(part, leaves, real=name in reals)) for name, part in parts))
    raise UnknownPartError


@lru_cache
def _real_parameters(kind: type) -> frozenset[str]:
    constraints = getattr(kind, "arg_constraints", {})
    return frozenset(n for n, c in constraints.items() if getattr(c, "is_discrete", None) is False)


def plain(number: Any) -> Hashable:
    """A number, or a small array of them, to look it up."""
    if isinstance(number, (int, float)):
        return number
    if number.nbytes > _SMALL:
        raise UnknownPartError
    return np.asarray(number).tobytes()


def rebuilt(value: Any, numbers: Iterator[Any], *, real: bool = False) -> Any:
    """A value with other numbers in it, in the order of `_key`. What has none is left as it is."""
    if isinstance(value, (Tracer, float)) or (type(value) is int and real):
        return next(numbers)
    if isinstance(value, (np.ndarray, np.generic, jax.Array)):
        return next(numbers) if real or np.issubdtype(value.dtype, np.floating) else value
    if isinstance(value, _STATIC):
        return value
    if isinstance(value, (tuple, list)):
        parts = [rebuilt(part, numbers) for part in value]
        return value if all(a is b for a, b in zip(parts, value, strict=True)) else type(value)(parts)
    if isinstance(value, dict):
        parts = {k: rebuilt(part, numbers) for k, part in value.items()}
        return value if all(parts[k] is part for k, part in value.items()) else type(value)(parts)
    reals = _real_parameters(type(value))
    inside = {name: rebuilt(part, numbers, real=name in reals) for name, part in vars(value).items()}
    if all(inside[name] is part for name, part in vars(value).items()):
        return value
    other = object.__new__(type(value))
    vars(other).update(inside)
    return other
