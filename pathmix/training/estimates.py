"""The ELBO of a trained guide from draws of it, and how much the end of training brought."""

import math
from typing import NamedTuple

import numpy as np


class ElboEstimate(NamedTuple):
    elbo: float
    error: float  # its standard error
    acceptance: float
    draws: int
    zero_density: float  # share of draws with zero density inside the region
    broken_density: float  # share with a density that is NaN or infinite
    lost: float = 0.0  # share whose density under the guide nobody knows: it has diverged


class Rise(NamedTuple):
    """By how much the ELBO rose over the last quarter of training."""

    nats: float
    error: float


def estimated(log_ratios: np.ndarray, inside: np.ndarray, lost: np.ndarray | None = None) -> ElboEstimate:
    """The truncated ELBO (Eq. 11), from log gamma - log q~ of draws and which of them are in the region.

    Draws that a diverged guide has lost make all others worthless. Zero density is as good as outside: the
    guide is truncated to where the path has any.
    """
    if lost is not None and np.any(lost):
        return ElboEstimate(-math.inf, math.nan, 0.0, len(inside), 0.0, 0.0, float(np.mean(lost)))
    zero = inside & np.isneginf(log_ratios)
    accepted = log_ratios[inside & ~zero]
    acceptance = float(np.mean(inside & ~zero))
    elbo, error = -math.inf, math.nan
    broken = np.isnan(accepted) | np.isposinf(accepted)
    if len(accepted) and not np.any(broken):
        elbo = float(np.mean(accepted) + np.log(acceptance))
        # By the delta method: the mean over the accepted draws, and the logarithm of their share.
        of_share = (1 - acceptance) / (acceptance * len(inside))
        error = float(np.sqrt(np.var(accepted) / len(accepted) + of_share))
    return ElboEstimate(
        elbo=elbo,
        error=error,
        acceptance=acceptance,
        draws=len(inside),
        zero_density=float(np.mean(zero)),
        broken_density=float(np.mean(broken)) if len(accepted) else 0.0,
    )


def rise_between(earlier: np.ndarray, now: np.ndarray) -> Rise | None:
    """From log-ratios of draws made with the same noise: most of what the two means vary by cancels."""
    both = np.isfinite(now) & np.isfinite(earlier)
    gained = now[both] - earlier[both]
    if len(gained) < 2:
        return None
    return Rise(float(gained.mean()), float(gained.std() / np.sqrt(len(gained))))
