"""The prior probability of a box, where its elements are drawn one by one from known distributions."""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from scipy import special

from pathmix.program.slp import Site, StraightLineProgram
from pathmix.regions.expressions import expressions
from pathmix.regions.intervals import Interval
from pathmix.regions.witnesses import Box


class _Family(NamedTuple):
    """The probability of what is below a number, and of what is above: each is exact where it is small.

    Families take their parameters in the order in which front ends note them.
    """

    below: Callable[..., float]
    above: Callable[..., float]


def _standard(below: Callable[[float], float], above: Callable[[float], float]) -> _Family:
    """A location and a scale."""
    return _Family(
        lambda x, loc, scale: below((x - loc) / scale), lambda x, loc, scale: above((x - loc) / scale)
    )


_FAMILIES = {
    "Beta": _Family(lambda x, a, b: special.betainc(a, b, x), lambda x, a, b: special.betaincc(a, b, x)),
    "Cauchy": _standard(lambda z: math.atan2(1, -z) / math.pi, lambda z: math.atan2(1, z) / math.pi),
    "Exponential": _Family(lambda x, rate: -math.expm1(-rate * x), lambda x, rate: math.exp(-rate * x)),
    "Gamma": _Family(
        lambda x, shape, rate: special.gammainc(shape, rate * x),
        lambda x, shape, rate: special.gammaincc(shape, rate * x),
    ),
    "HalfCauchy": _Family(
        lambda x, scale: 2 * math.atan2(x, scale) / math.pi,
        lambda x, scale: 2 * math.atan2(scale, x) / math.pi,
    ),
    "HalfNormal": _Family(
        lambda x, scale: special.erf(x / scale / math.sqrt(2)),
        lambda x, scale: special.erfc(x / scale / math.sqrt(2)),
    ),
    "Laplace": _standard(
        lambda z: math.exp(z) / 2 if z < 0 else 1 - math.exp(-z) / 2,
        lambda z: math.exp(-z) / 2 if z > 0 else 1 - math.exp(z) / 2,
    ),
    "LogNormal": _Family(
        lambda x, loc, scale: special.ndtr((math.log(x) - loc) / scale),
        lambda x, loc, scale: special.ndtr((loc - math.log(x)) / scale),
    ),
    "Normal": _standard(special.ndtr, lambda z: special.ndtr(-z)),
    "StudentT": _Family(
        lambda x, df, loc, scale: special.stdtr(df, (x - loc) / scale),
        lambda x, df, loc, scale: special.stdtr(df, (loc - x) / scale),
    ),
    "Uniform": _Family(
        lambda x, low, high: (x - low) / (high - low), lambda x, low, high: (high - x) / (high - low)
    ),
}
# Discovery asks for one box after another of the same path.
_known: WeakKeyDictionary[StraightLineProgram, dict[int, list[np.ndarray] | None]] = WeakKeyDictionary()


def probability(slp: StraightLineProgram, box: Box) -> float | None:
    """None where a prior is not known, or depends on free sites: elements are not independent then."""
    parameters = _known.setdefault(slp, {})
    total = 1.0
    for (number, position), interval in box.items():
        site = slp.sites[number]
        if number not in parameters:
            parameters[number] = _parameters(slp, site)
        found = parameters[number]
        if found is None:
            return None
        assert site.prior is not None and site.bounds is not None
        own = tuple(float(np.broadcast_to(values, site.shape).ravel()[position]) for values in found)
        low, high = (float(np.broadcast_to(bound, site.shape).ravel()[position]) for bound in site.bounds)
        total *= _of_interval(site.prior.family, own, interval, low, high)
    return total if math.isfinite(total) else None


def _parameters(slp: StraightLineProgram, site: Site) -> list[np.ndarray] | None:
    """Of the prior of a site, if they are numbers along the path."""
    if site.prior is None:
        return None
    slots = [slot for slot in site.prior.parameters if isinstance(slot, int)]
    computed = iter(expressions(slp.graph.outputs(slots), [one.pinned for one in slp.sites]) if slots else ())
    found = []
    for slot in site.prior.parameters:
        if not isinstance(slot, int):
            found.append(slot)
            continue
        expression = next(computed)
        if expression.free:
            return None
        found.append(np.asarray(expression.value()))
    return found


@lru_cache(4_096)
def _of_interval(
    family: str, parameters: tuple[float, ...], interval: Interval, low: float, high: float
) -> float:
    """Of one element with this support; a small one far out is no difference of large ones."""
    try:
        (below, above), (below_upper, above_upper) = (
            _around(family, parameters, end, low, high) for end in (interval.lower, interval.upper)
        )
    except (ArithmeticError, ValueError):  # parameters that cannot be
        return math.nan
    return min(max(above - above_upper if below > 0.5 else below_upper - below, 0.0), 1.0)


def _around(
    family: str, parameters: tuple[float, ...], end: float, low: float, high: float
) -> tuple[float, float]:
    """What is below a number and what is above it; formulas need not say so outside of the support."""
    if end <= low or end == -math.inf:
        return 0.0, 1.0
    if end >= high or end == math.inf:
        return 1.0, 0.0
    made = _FAMILIES[family]
    return float(made.below(end, *parameters)), float(made.above(end, *parameters))
