"""Observed values and the supports of their distributions.

The libraries check one against the other only while they validate, which is off while programs run. Here it
is made up for, once for each path. Works on the arrays and constraints of both libraries.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from pathmix.program.slp import Flaw
from pathmix.program.source import Source

# Distributions that take NaN for a missing value.
_TAKE_NAN = ("NanMaskedNormal", "NanMaskedMultivariateNormal")
_WRAPPERS = ("Independent", "ExpandedDistribution", "MaskedDistribution")
_ALL_NUMBERS = ("_Real", "_RealVector", "_RealMatrix")


class Cover(NamedTuple):
    """Whether each value of a batch is in a part of its closed support, or masked."""

    inside: Any
    binds: bool  # latent sites on which it depends; to be no NaN does not


def covered(fn: Any, value: Any, mask: Any, rounded: Callable[[Any], Any]) -> list[Cover]:
    """The covers of observed values, which must all hold.

    Each end of an interval is one of them: one may depend on latent sites where the other does not. The ends
    themselves have measure zero, and the density says what it is there. Matrices and simplices may have been
    computed in single precision: `rounded` gives that. Empty where the distribution cannot tell.
    """
    support = getattr(fn, "support", None)
    if support is None or type(fn).__name__ in _TAKE_NAN:
        return []
    return [*_covered_by(fn, support, value, mask, rounded), *covered_before(fn, value, mask, rounded)]


def covered_before(fn: Any, value: Any, mask: Any, rounded: Callable[[Any], Any]) -> list[Cover]:
    """The covers of what values were before they were transformed, where a distribution is told so.

    Its support is what the last transform can give: that of a shift is all numbers, whatever is shifted.
    """
    plain = fn
    while type(plain).__name__ in _WRAPPERS:
        plain = plain.base_dist
    if type(plain).__name__ != "TransformedDistribution":
        return []
    for transform in reversed(plain.transforms):
        value = transform.inv(value)
    base = plain.base_dist
    further = len(fn.event_shape) - len(base.event_shape)
    covers = [cover for cover in covered(base, value, mask, rounded) if cover.binds]
    return [Cover(_over_events(cover.inside, further), binds=True) for cover in covers]


def _covered_by(fn: Any, support: Any, value: Any, mask: Any, rounded: Callable[[Any], Any]) -> list[Cover]:
    base, mixed = support, False
    while hasattr(base, "base_constraint"):
        mixed = mixed or type(base).__name__.startswith("Mixture")
        base = base.base_constraint
    bounds = [getattr(base, name, None) for name in ("lower_bound", "upper_bound")]
    if base.is_discrete or all(bound is None for bound in bounds):
        try:
            inside = support.check(value)
            inside = inside | support.check(rounded(value)) if support.event_dim else inside
            hidden = ~mask
            inside = inside | _over_events(hidden, support.event_dim if hidden.ndim else 0)
            return [Cover(inside, binds=type(base).__name__ not in _ALL_NUMBERS)]
        except NotImplementedError:
            return []
    parts = [value == value]
    # Components of a mixture have supports of their own, which their densities know.
    if not (mixed and any(np.ndim(bound) for bound in bounds if bound is not None)):
        parts += [value >= bounds[0]] if bounds[0] is not None else []
        parts += [value <= bounds[1]] if bounds[1] is not None else []
    event_dim = len(fn.event_shape)
    return [Cover(_over_events(part | ~mask, event_dim), binds=i > 0) for i, part in enumerate(parts)]


def _over_events(part: Any, event_dim: int) -> Any:
    for _ in range(event_dim):
        part = part.all(-1)
    return part


def described(support: Any) -> str:
    """A support in words; bounds that are arrays are left out, for they may be random."""
    while hasattr(support, "base_constraint"):
        support = support.base_constraint
    bounds = {name: getattr(support, name, None) for name in ("lower_bound", "upper_bound")}
    shown = ", ".join(
        f"{name}={bound:g}" for name, bound in bounds.items() if isinstance(bound, (int, float))
    )
    return f"{type(support).__name__.strip('_')}({shown})"


def flaw_of(
    name: str, source: Source, value: np.ndarray | None, inside: np.ndarray, support: str
) -> Flaw | None:
    """What is wrong with an observed value; `inside` is false where it counts and is not covered."""
    if np.all(inside):
        return None
    position = np.unravel_index(int(np.argmax(~inside)), inside.shape)
    example = np.array("a value") if value is None else _event_at(value, inside.shape, position)
    where = f" (the first at index {', '.join(map(str, position))})" if position else ""
    count = f"{int((~inside).sum())} of {inside.size} values" if position else "its value"
    if value is not None and np.isnan(example).any():
        return Flaw(
            "NaN",
            f"The data of the observed site {name!r} at {source} have NaN: {count}{where}. Leave missing "
            "values out, or give the site an obs_mask.",
        )
    shown = np.array2string(example, threshold=5)
    return Flaw(
        "impossible",
        f"The observed site {name!r} at {source} has data that its distribution cannot give: {count}{where}, "
        f"{shown}, outside of the support {support}. Its density is zero.",
    )


def _event_at(value: np.ndarray, batch: tuple[int, ...], position: Any) -> np.ndarray:
    """One event of a value, which may have been broadcast against its distribution."""
    event = next(n for n in range(value.ndim + 1) if _broadcasts(value.shape[: value.ndim - n], batch))
    return np.broadcast_to(value, (*batch, *value.shape[value.ndim - event :]))[position]


def _broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(shape, to) == to
    except ValueError:
        return False


def broadcast_remark(name: str, source: Source, value: Sequence[int], batch: Sequence[int]) -> str | None:
    """A sentence on an observed value that counts more than once, against a distribution with more elements.

    A single number for a whole batch is usually meant so.
    """
    if len(value) == 0 or np.prod(np.broadcast_shapes(value, batch)) <= np.prod(value):
        return None
    return (
        f"The observed site {name!r} at {source} has data of batch shape {tuple(value)} against a "
        f"distribution of batch shape {tuple(batch)}: together {np.broadcast_shapes(value, batch)}, so that "
        "data count several times. If that is not meant, reshape one of them."
    )
