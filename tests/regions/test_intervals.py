"""Preimages of intervals against brute force: what is inside goes inside, and nothing else."""

import math

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from pathmix.engine.precision import engine_scope
from pathmix.regions import intervals
from pathmix.regions.intervals import EVERYTHING, INF, INVERSES, Interval
from pathmix.regions.saturation import _FUNCTIONS, saturation

# Quarters, halves and whole numbers: arithmetic with them is exact, ends included.
QUARTERS = st.integers(-40, 40).map(lambda n: n / 4)
FACTORS = st.sampled_from([-4.0, -2.0, -1.0, -0.5, 0.25, 0.5, 1.0, 2.0])
ENDS = st.one_of(QUARTERS, QUARTERS, st.sampled_from([-INF, INF]))
POINTS = [*(n / 16 for n in range(-1000, 1001)), -1e300, -1e9, 1e9, 1e300]


@st.composite
def some_intervals(draw):
    lower, upper = sorted([draw(ENDS), draw(ENDS)])
    assume(lower < INF and upper > -INF)
    # Where nothing overflows, infinite ends include what is beyond all numbers.
    return Interval(lower, upper, draw(st.booleans()) or lower == -INF, draw(st.booleans()) or upper == INF)


def away(x):
    return math.copysign(math.floor(abs(x) + 0.5), x)


def saturating(x, smallest=-128, largest=127):
    return min(max(math.trunc(x), smallest), largest)


FUNCTIONS = {
    "add": (lambda x, c: x + c, lambda i, c: intervals.under_add(i, c)),
    "mul": (lambda x, c: x * c, lambda i, c: intervals.under_mul(i, c)),
    "div": (lambda x, c: x / c, lambda i, c: intervals.under_div(i, c)),
    "max": (lambda x, c: max(x, c), lambda i, c: intervals.under_max(i, c)),
    "min": (lambda x, c: min(x, c), lambda i, c: intervals.under_min(i, c)),
    "floor": (lambda x, c: float(np.floor(x)), lambda i, c: intervals.under_floor(i)),
    "ceil": (lambda x, c: float(np.ceil(x)), lambda i, c: intervals.under_ceil(i)),
    "round": (lambda x, c: float(np.round(x)), lambda i, c: intervals.under_round(i, to_even=True)),
    "away": (lambda x, c: away(x), lambda i, c: intervals.under_round(i, to_even=False)),
    "trunc": (lambda x, c: float(np.trunc(x)), lambda i, c: intervals.under_trunc(i)),
    "int8": (lambda x, c: saturating(x), lambda i, c: intervals.under_conversion(i, -128, 127)),
    "uint8": (lambda x, c: saturating(x, 0, 255), lambda i, c: intervals.under_conversion(i, 0, 255)),
    "abs": (lambda x, c: abs(x), lambda i, c: intervals.under_abs(i)),
    "square": (lambda x, c: x * x, lambda i, c: intervals.under_power(i, 2)),
    "cube": (lambda x, c: x * x * x, lambda i, c: intervals.under_power(i, 3)),
    "neg": (lambda x, c: -x, lambda i, c: i.flipped()),
}
FIXED = settings(
    derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck), max_examples=60
)


@pytest.mark.parametrize("name", FUNCTIONS)
@FIXED
@given(some_intervals(), FACTORS)
def test_preimages(name, interval, c):
    function, pull_back = FUNCTIONS[name]
    found = pull_back(interval, c)
    inside = [function(x, c) in interval for x in POINTS]
    if found is None:
        # Nothing gets there, or from several stretches.
        assert not any(inside) or np.sum(np.diff([0, *inside, 0]) == 1) > 1 or name == "abs"
        return
    for x, expected in zip(POINTS, inside, strict=True):
        is_root = name in ("square", "cube") and min(abs(x - found.lower), abs(x - found.upper)) < 1e-9
        assert is_root or (x in found) == expected, (found, x)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", INVERSES)
def test_increasing_functions_as_they_are_computed(name, dtype):
    """Both ends of their range, in and out, and levels between."""
    with engine_scope(dtype):
        values = saturation(name, np.dtype(dtype))
        compute = _FUNCTIONS[name]
        # A little away from where they stop growing: the last bits before that need not be in order.
        assert (name, dtype) == ("erf", "float32") or values.first < 0 < values.last
        near = [end * factor for end in (values.first, values.last) for factor in (0.999, 1.001)]
        points = np.array([*near, *np.linspace(-3, 3, 41), -1e4, -800, -50, 50, 800, 1e4], dtype)
        computed = np.asarray(compute(jnp.asarray(points)), float)
        middle = [values.low / 2 if np.isfinite(values.low) else -2.0, 0.3]
        for level in (values.low, values.high, *middle):
            for closed in (False, True):
                for interval in (intervals.at_least(level, closed), intervals.at_most(level, closed)):
                    found = intervals.under_increasing(interval, INVERSES[name], values)
                    if (name, dtype) == ("erf", "float32") and level in (values.low, values.high):
                        continue  # comes and goes between 3.79 and 3.82
                    for x, value in zip(points.astype(float), computed, strict=True):
                        end = INVERSES[name](level) if level in middle and values.low < level else INF
                        if abs(x - end) > 1e-5:
                            assert (found is not None and x in found) == (value in interval)


def test_overflow_is_not_beyond_every_number():
    """An open infinite end leaves out what overflows."""
    finite = Interval(-INF, INF)
    assert finite.excludes_infinity and not EVERYTHING.excludes_infinity
    assert intervals.under_mul(finite, 2.0) is None and intervals.under_mul(finite, 0.5) is not None
    assert intervals.under_div(finite, 0.5) is None and intervals.under_power(finite, 3) is None
    assert intervals.comparison("lt", INF) == Interval(-INF, INF, lower_closed=True)


@pytest.mark.parametrize("bad", [math.nan, INF, -INF, 0.0])
def test_numbers_that_leave_no_interval(bad):
    assert intervals.under_mul(EVERYTHING, bad) is None
    assert intervals.under_div(EVERYTHING, bad) is None
    assert bad == 0 or intervals.under_add(EVERYTHING, bad) is None
    assert not math.isnan(bad) or intervals.comparison("lt", bad) is None
