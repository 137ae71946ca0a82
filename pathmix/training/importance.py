"""Importance sampling: the evidence of a path from draws of a proposal, Pareto-smoothed."""

import math
from typing import NamedTuple

import numpy as np
from arviz_stats.base.array import array_stats

from pathmix.posterior.weights import logsumexp

# Beyond the first, the variance of weights is not finite; up to the second, estimates converge all the same.
SAFE_KHAT, GOOD_KHAT = 0.5, 0.7
_FEWEST = 25  # draws of positive weight, without which a tail says nothing
_ROUNDINGS = 16  # of a density, in which many terms are added
_FLAT = 1e-9  # log-ratios that differ by less, or by roundings, are all the same: the proposal is exact


class Importance(NamedTuple):
    log_evidence: float
    error: float  # its standard error
    khat: float  # the shape of the weights' tail; inf where too few draws have any weight
    effective_draws: float
    draws: int

    @property
    def good(self) -> bool:
        """Whether the estimate, and its error, can be relied on."""
        if self.khat < SAFE_KHAT:
            return self.effective_draws >= 8 * _FEWEST
        return self.khat < GOOD_KHAT and self.effective_draws >= 40 * _FEWEST


def importance(log_ratios: np.ndarray) -> Importance:
    """From log gamma - log q of all draws; -inf for those outside of the region, which count as zero.

    The unsmoothed estimate is unbiased; smoothing replaces its largest weights by what a Pareto tail would
    have in their place (Vehtari et al. 2024), and its shape tells whether the variance is finite.
    """
    epsilon = np.finfo(log_ratios.dtype).eps
    count, log_ratios = len(log_ratios), np.asarray(log_ratios, float)
    usable = np.isfinite(log_ratios)
    if np.any(np.isnan(log_ratios) | np.isposinf(log_ratios)):
        return Importance(math.nan, math.inf, math.inf, 0.0, count)
    if np.sum(usable) < _FEWEST:
        found = logsumexp(log_ratios) - math.log(count)
        return Importance(found, math.inf, math.inf, float(np.any(usable)), count)
    smooth = np.full(count, -np.inf)
    rounding = float(_ROUNDINGS * epsilon * (1 + abs(np.max(log_ratios))))
    smooth[usable], khat = _smoothed(log_ratios[usable], max(_FLAT, 4 * rounding))
    top = np.max(smooth)
    weights = np.exp(smooth - top)
    mean = float(np.mean(weights))
    spread = float(np.mean((weights / mean - 1) ** 2))
    log_evidence = float(top) + math.log(mean)
    return Importance(
        log_evidence=log_evidence,
        error=math.hypot(math.sqrt(spread / count), hidden_error(khat, count), rounding),
        khat=khat,
        effective_draws=count / (1 + spread),
        draws=count,
    )


def hidden_error(khat: float, draws: int) -> float:
    """Weights without a finite variance do not show their error, but their tail does."""
    return min(2 * draws ** (min(khat, 1.0) - 1), 1.0) if khat > SAFE_KHAT else 0.0


def _smoothed(log_ratios: np.ndarray, flat: float) -> tuple[np.ndarray, float]:
    """In the scale that they came in."""
    tail = math.ceil(3 * math.sqrt(len(log_ratios)))
    order = np.argsort(log_ratios)
    if log_ratios[order[-1]] - log_ratios[order[-tail:]][0] < flat:
        return log_ratios, 0.0
    with np.errstate(all="ignore"):  # where one weight is all there is, the others are zero beside it
        normalised, khat = array_stats.psislw(-log_ratios)
    if not np.isfinite(khat) or not np.all(np.isfinite(normalised)):
        return log_ratios, math.inf
    # The largest below the tail is not smoothed, so it tells what was divided by, to the last digit.
    below = order[max(len(order) - tail - 1, 0)]
    return normalised + (log_ratios[below] - normalised[below]), float(khat)
