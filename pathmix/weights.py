"""Weights of paths from their ELBOs (Proposition 1)."""

from collections.abc import Sequence

import numpy as np


def global_elbo(elbos: Sequence[float]) -> float:
    """The global ELBO at the best weights: logsumexp of the local ones."""
    values = np.asarray(elbos, float)
    top = np.max(values, initial=-np.inf)
    return float(top + np.log(np.sum(np.exp(values - top)))) if np.isfinite(top) else -np.inf


def path_weights(elbos: Sequence[float]) -> np.ndarray:
    """The best mixture weights, softmax of the ELBOs; all zero if no path has a finite one."""
    total = global_elbo(elbos)
    if not np.isfinite(total):
        return np.zeros(len(elbos))
    return np.exp(np.asarray(elbos, float) - total)
