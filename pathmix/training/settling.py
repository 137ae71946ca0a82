"""Whether a guide has settled: what further steps would bring, by what the last ones did."""

from collections.abc import Sequence

import numpy as np

_NOTHING = 0.05  # nats, for which no further steps are taken,
_FEWEST_LAST = 500  # but so many, over which the learning rate falls
_FEWEST = 500  # steps in each of the two stretches that are compared
_BATCHES = 10  # of each, whose means tell how sure the difference is
_LOST = 0.01  # of the steps may have had no usable particle


def last_steps(history: Sequence[np.ndarray], lately: int, left: int) -> int | None:
    """How many steps of those left are enough, after so many lately; None where all may be needed."""
    recent = np.concatenate([np.zeros(0), *history])
    recent = recent[len(recent) - lately :]
    return max(lately // 2, _FEWEST_LAST) if could_bring(recent, left) < _NOTHING else None


def could_bring(history: np.ndarray, left: int) -> float:
    """Nats that the steps left could bring, at most, if the ELBO rose on as it did lately.

    The last third of the history is compared with the third before. Noise counts as a rise, so that the less
    is known, the longer training goes on.

    >>> settled, rising = np.zeros(3_000), 1e-4 * np.arange(3_000.0)
    >>> could_bring(settled, left=10_000), could_bring(settled[:1_000], left=10_000)
    (0.0, inf)
    >>> could_bring(rising, left=10_000) > 1.0
    True
    """
    third = len(history) // 3
    if third < _FEWEST or np.mean(np.isfinite(history)) < 1 - _LOST:
        return np.inf
    stretches = (history[-2 * third : -third], history[-third:])
    means = np.array([[np.nanmean(batch) for batch in np.array_split(one, _BATCHES)] for one in stretches])
    before, now = means.mean(axis=1)
    error = np.sqrt(np.sum(means.var(axis=1, ddof=1)) / _BATCHES)
    return float((max(now - before, 0.0) + 2 * error) / third * left)
