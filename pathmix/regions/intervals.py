"""Intervals of the real line, and how they pull back through the functions of floating-point numbers.

Floating-point functions reach infinity (by overflow) and the ends of their range (by rounding), so an
interval says at each end, infinite ones too, whether the end itself is inside.
"""

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
    def opposite(self) -> "Interval | None":
        """What a half-line leaves out; None for others."""
        if self.lower == -INF and self.upper < INF:
            return Interval(self.upper, INF, not self.upper_closed, True)
        if self.upper == INF and self.lower > -INF:
            return Interval(-INF, self.lower, True, not self.lower_closed)
        return None

    @property
    def has_volume(self) -> bool:
        return self.lower < self.upper

    @property
    def excludes_infinity(self) -> bool:
        """Whether a value that overflows would be outside at an end that lets every number in."""
        below, above = self.lower == -INF, self.upper == INF
        return (below and not self.lower_closed) or (above and not self.upper_closed)

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
        lower, upper = f"{self.lower:g}", f"{self.upper:g}"
        if lower == upper:  # in so few digits
            lower, upper = repr(self.lower), repr(self.upper)
        left = "" if self.lower == -INF else f"{lower} {'<=' if self.lower_closed else '<'} "
        right = "" if self.upper == INF else f" {'<=' if self.upper_closed else '<'} {upper}"
        if left and not right:
            return f"{name} {'>=' if self.lower_closed else '>'} {lower}"
        return f"{left}{name}{right}"


EVERYTHING = Interval(-INF, INF, True, True)


def at_least(lower: float, closed: bool = True) -> Interval:
    return Interval(lower, INF, closed, True)


def at_most(upper: float, closed: bool = True) -> Interval:
    return Interval(-INF, upper, True, closed)


def comparison(operator: str, bound: float) -> Interval | None:
    """The numbers x with `x operator bound`. None: nothing compares with NaN."""
    if math.isnan(bound):
        return None
    if operator in ("lt", "le"):
        return at_most(bound, operator == "le")
    return at_least(bound, operator == "ge")


def _ceil(x: float) -> float:
    return x if math.isinf(x) else float(math.ceil(x))


def _floor(x: float) -> float:
    return x if math.isinf(x) else float(math.floor(x))


# Preimages of an interval under functions of one number. None: not an interval, or not known.


def under_add(interval: Interval, c: float) -> Interval | None:
    """Preimage under x -> x + c."""
    return interval.ends(lambda x: x - c, lambda x: x - c) if math.isfinite(c) else None


def under_mul(interval: Interval, c: float) -> Interval | None:
    """Preimage under x -> c x."""
    if c == 0 or not math.isfinite(c) or (interval.excludes_infinity and abs(c) > 1):
        return None
    scaled = interval if c > 0 else interval.flipped()
    return scaled.ends(lambda x: x / abs(c), lambda x: x / abs(c))


def under_div(interval: Interval, c: float) -> Interval | None:
    """Preimage under x -> x / c."""
    if c == 0 or not math.isfinite(c) or (interval.excludes_infinity and abs(c) < 1):
        return None
    scaled = interval if c > 0 else interval.flipped()
    return scaled.ends(lambda x: x * abs(c), lambda x: x * abs(c))


def under_max(interval: Interval, c: float) -> Interval | None:
    """Preimage under x -> max(x, c)."""
    if c in interval:
        return at_most(interval.upper, interval.upper_closed)
    return interval if c <= interval.lower else None


def under_min(interval: Interval, c: float) -> Interval | None:
    flipped = under_max(interval.flipped(), -c)
    return None if flipped is None else flipped.flipped()


def under_floor(interval: Interval) -> Interval:
    low, high = interval.integers()
    return Interval(
        low,
        high + 1,
        lower_closed=low > -INF or interval.lower_closed,
        upper_closed=high == INF and interval.upper_closed,
    )


def under_ceil(interval: Interval) -> Interval:
    return under_floor(interval.flipped()).flipped()


def under_round(interval: Interval, *, to_even: bool) -> Interval:
    """Preimage under rounding to the nearest; halves go to even numbers, or away from zero."""
    low, high = interval.integers()
    return Interval(
        low - 0.5,
        high + 0.5,
        interval.lower_closed if low == -INF else low % 2 == 0 if to_even else low > 0,
        interval.upper_closed if high == INF else high % 2 == 0 if to_even else high < 0,
    )


def under_trunc(interval: Interval) -> Interval:
    """Preimage under rounding towards zero."""
    low, high = interval.integers()
    lower = at_least(low) if low > 0 else at_least(low - 1, low == -INF and interval.lower_closed)
    upper = at_most(high) if high < 0 else at_most(high + 1, high == INF and interval.upper_closed)
    return lower & upper


def under_conversion(interval: Interval, smallest: int, largest: int) -> Interval | None:
    """Preimage under conversion to whole numbers of a type: towards zero, and not beyond its ends."""
    low, high = interval.integers()
    if low > largest or high < smallest:
        return None
    kept = at_least(low) if low > smallest else EVERYTHING
    return under_trunc(kept & (at_most(high) if high < largest else EVERYTHING))


def under_abs(interval: Interval) -> Interval | None:
    """An upper bound on |x| is an interval; a lower one is two."""
    if interval.lower > 0 or (interval.lower == 0 and not interval.lower_closed):
        return None
    return Interval(-interval.upper, interval.upper, interval.upper_closed, interval.upper_closed)


def under_power(interval: Interval, exponent: int) -> Interval | None:
    if exponent <= 0 or interval.excludes_infinity:
        return None
    rooted = interval.ends(*(2 * (lambda x: math.copysign(abs(x) ** (1 / exponent), x),)))
    return rooted if exponent % 2 else under_abs(rooted)


@dataclass(frozen=True)
class Range:
    """What an increasing function of floating-point numbers gives, and where it stops growing."""

    low: float  # its value at `first` and below
    high: float  # its value at `last` and above
    first: float  # NaN where there is no such number
    last: float


def under_increasing(interval: Interval, inverse: Callable[[float], float], values: Range) -> Interval | None:
    """Preimage under an increasing function that is defined everywhere."""
    above = _above(interval.lower, interval.lower_closed, inverse, values)
    mirrored = Range(-values.high, -values.low, -values.last, -values.first)
    below = _above(-interval.upper, interval.upper_closed, lambda x: -inverse(-x), mirrored)
    return None if above is None or below is None else above & below.flipped()


def _above(end: float, closed: bool, inverse: Callable[[float], float], values: Range) -> Interval | None:
    """Where an increasing function is beyond a number; None if nowhere."""
    if end < values.low or (end == values.low and closed):
        return EVERYTHING
    if end > values.high or (end == values.high and not closed):
        return None
    if end in (values.low, values.high):
        reached = values.first if end == values.low else values.last
        return None if math.isnan(reached) else at_least(reached, closed)
    # A NaN changes nothing here.
    return at_least(min(max(inverse(end), values.first), values.last), closed)


def _erf_inverse(p: float) -> float:
    # From the nearer end: 1 - p is exact where p is close to 1.
    tail = NormalDist().inv_cdf((1 - abs(p)) / 2) / math.sqrt(2)
    return -tail if p > 0 else tail


# Only functions that are defined everywhere: a NaN would be on neither side of a comparison.
INVERSES: dict[str, Callable[[float], float]] = {
    "exp": math.log,
    "expm1": math.log1p,
    "tanh": math.atanh,
    "logistic": lambda p: math.log(p) - math.log1p(-p),
    "erf": _erf_inverse,
    "atan": math.tan,
    "sinh": math.asinh,
}
