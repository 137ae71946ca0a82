"""Where increasing functions stop growing when they are computed with floating-point numbers.

`tanh(x)` is 1 from 19 on, `exp(x)` is 0 below -708 or so and infinite above 709. Compilers differ (in what
they do with the smallest numbers, above all), so it is measured, once for each function and type.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import jax
import numpy as np

from pathmix.regions.intervals import Range

_FUNCTIONS: dict[str, Callable[[Any], jax.Array]] = {
    "exp": jax.lax.exp,
    "expm1": jax.lax.expm1,
    "tanh": jax.lax.tanh,
    "logistic": jax.lax.logistic,
    "erf": jax.lax.erf,
    "atan": jax.lax.atan,
    "sinh": jax.lax.sinh,
}
_FAR = 1e20  # beyond, none of them grows
_GRID = 4096  # no remainder, which processors may compute to other last bits
_REFINEMENTS = 14  # from _FAR to neighbouring numbers
_BLURRED = 1e-6  # the last bits may be out of order so close to the end


@lru_cache
def saturation(function: str, dtype: np.dtype) -> Range:
    compute = _FUNCTIONS[function]

    def values(points: np.ndarray) -> np.ndarray:
        return np.asarray(compute(points.astype(dtype)), float)

    low, high = values(np.array([-_FAR, _FAR]))
    first, _ = _bracket(lambda points: values(points) == low, -_FAR, 0.0, dtype)
    _, last = _bracket(lambda points: values(points) != high, 0.0, _FAR, dtype)
    return Range(float(low), float(high), first, last)


def _bracket(
    holds: Callable[[np.ndarray], np.ndarray], lower: float, upper: float, dtype: np.dtype
) -> tuple[float, float]:
    """Neighbouring numbers: what holds at `lower` holds up to the first, and no longer from the second on.

    NaN if it comes and goes for a while in between.
    """
    for _ in range(_REFINEMENTS):
        points = np.linspace(lower, upper, _GRID).astype(dtype)
        found = holds(points)
        end = int(np.argmin(found))
        if np.any(found[end:]) and upper - lower > _BLURRED * max(abs(lower), abs(upper)):
            return np.nan, np.nan
        lower, upper = float(points[end - 1]), float(points[end])
    return lower, upper
