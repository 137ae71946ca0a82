"""Intervals of the real line, and how they pull back through monotone maps."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist

INF = math.inf


@dataclass(frozen=True)
class Interval:
    """lower < x < upper, each end included or not.

    >>> print(Interval(-4.0, -3.0, upper_closed=True).describe("u"))
    -4 < u <= -3
    """

    lower: float = -INF
    upper: float = INF
    lower_closed: bool = False
    upper_closed: bool = False

    def __and__(self, other: "Interval") -> "Interval":
        # At equal ends the open one is tighter.
        lower, lower_open = max((self.lower, not self.lower_closed), (other.lower, not other.lower_closed))
        upper, upper_closed = min((self.upper, self.upper_closed), (other.upper, other.upper_closed))
        return Interval(lower, upper, not lower_open, upper_closed)

    def __contains__(self, x: float) -> bool:
        above = x > self.lower or (self.lower_closed and x == self.lower)
        below = x < self.upper or (self.upper_closed and x == self.upper)
        return above and below

    @property
    def has_volume(self) -> bool:
        return self.lower < self.upper

    def flipped(self) -> "Interval":
        return Interval(-self.upper, -self.lower, self.upper_closed, self.lower_closed)

    def ends(self, lower: Callable[[float], float], upper: Callable[[float], float]) -> "Interval":
        """New ends, with the same ones included."""
        return Interval(lower(self.lower), upper(self.upper), self.lower_closed, self.upper_closed)

    def integers(self) -> tuple[float, float]:
        """The smallest and the largest integer inside."""
        low, high = _ceil(self.lower), _floor(self.upper)
        if low == self.lower and not self.lower_closed:
            low += 1
        if high == self.upper and not self.upper_closed:
            high -= 1
        return low, high

    def describe(self, name: str) -> str:
        left = "" if self.lower == -INF else f"{self.lower:g} {'<=' if self.lower_closed else '<'} "
        right = "" if self.upper == INF else f" {'<=' if self.upper_closed else '<'} {self.upper:g}"
        if left and not right:
            return f"{name} {'>=' if self.lower_closed else '>'} {self.lower:g}"
        return f"{left}{name}{right}"


def comparison(operator: str, bound: float) -> Interval:
    """The numbers x with `x operator bound`."""
    if operator in ("lt", "le"):
        return Interval(upper=bound, upper_closed=operator == "le")
    return Interval(lower=bound, lower_closed=operator == "ge")


def _ceil(x: float) -> float:
    return x if math.isinf(x) else float(math.ceil(x))


def _floor(x: float) -> float:
    return x if math.isinf(x) else float(math.floor(x))


# Preimages of an interval under functions of one number. None: not an interval.


def under_add(interval: Interval, c: float) -> Interval:
    return interval.ends(lambda x: x - c, lambda x: x - c)


def under_mul(interval: Interval, c: float) -> Interval | None:
    if c == 0 or not math.isfinite(c):
        return None
    scaled = interval if c > 0 else interval.flipped()
    return scaled.ends(lambda x: x / abs(c), lambda x: x / abs(c))


def under_max(interval: Interval, c: float) -> Interval | None:
    """Preimage under x -> max(x, c)."""
    if c in interval:
        return Interval(upper=interval.upper, upper_closed=interval.upper_closed)
    return interval if c <= interval.lower else None


def under_min(interval: Interval, c: float) -> Interval | None:
    flipped = under_max(interval.flipped(), -c)
    return None if flipped is None else flipped.flipped()


def under_floor(interval: Interval) -> Interval:
    low, high = interval.integers()
    return Interval(low, high + 1, lower_closed=True)


def under_ceil(interval: Interval) -> Interval:
    return under_floor(interval.flipped()).flipped()


def under_round(interval: Interval) -> Interval:
    low, high = interval.integers()
    return Interval(low - 0.5, high + 0.5)


def under_trunc(interval: Interval) -> Interval:
    """Preimage under rounding towards zero."""
    low, high = interval.integers()
    lower = Interval(low, lower_closed=True) if low > 0 else Interval(low - 1)
    upper = Interval(upper=high, upper_closed=True) if high < 0 else Interval(upper=high + 1)
    return lower & upper


def under_abs(interval: Interval) -> Interval | None:
    """An upper bound on |x| is an interval; a lower one is two."""
    if interval.lower > 0 or (interval.lower == 0 and not interval.lower_closed):
        return None
    return Interval(-interval.upper, interval.upper, interval.upper_closed, interval.upper_closed)


def under_power(interval: Interval, exponent: int) -> Interval | None:
    if exponent <= 0:
        return None
    rooted = interval.ends(*(2 * (lambda x: math.copysign(abs(x) ** (1 / exponent), x),)))
    return rooted if exponent % 2 else under_abs(rooted)


def _on_range(inverse: Callable[[float], float], low: float, high: float) -> Callable[[Interval], Interval]:
    """Preimage under an increasing function onto (low, high), given its inverse."""

    def lower(x: float) -> float:
        return -INF if x <= low else INF if x >= high else inverse(x)

    return lambda interval: interval.ends(lower, lower)


# Only functions that are defined everywhere: a NaN would be on neither side of a comparison.
UNDER_INCREASING: dict[str, Callable[[Interval], Interval]] = {
    "exp": _on_range(math.log, 0.0, INF),
    "expm1": _on_range(math.log1p, -1.0, INF),
    "tanh": _on_range(math.atanh, -1.0, 1.0),
    "logistic": _on_range(lambda p: math.log(p) - math.log1p(-p), 0.0, 1.0),
    "erf": _on_range(lambda p: NormalDist().inv_cdf((p + 1) / 2) / math.sqrt(2), -1.0, 1.0),
    "atan": _on_range(math.tan, -math.pi / 2, math.pi / 2),
    "sinh": _on_range(math.asinh, -INF, INF),
    "floor": under_floor,
    "ceil": under_ceil,
    "round": under_round,
}
