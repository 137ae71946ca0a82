"""Weights of paths from their ELBOs (Proposition 1)."""

from collections.abc import Sequence

import numpy as np


def logsumexp(values: Sequence[float]) -> float:
    array = np.asarray(values, float)
    top = np.max(array, initial=-np.inf)
    return float(top + np.log(np.sum(np.exp(array - top)))) if np.isfinite(top) else -np.inf


def global_elbo(elbos: Sequence[float], weights: Sequence[float]) -> float:
    """The ELBO of the mixture, E_q(k)[L_k - log q(k)] (Eq. 6); logsumexp of L_k at the best weights."""
    local, share = np.asarray(elbos, float), np.asarray(weights, float)
    used = share > 0
    return float(np.sum(share[used] * (local[used] - np.log(share[used])))) if np.any(used) else -np.inf


def path_weights(elbos: Sequence[float]) -> np.ndarray:
    """The best mixture weights, softmax of the ELBOs; all zero if no path has a finite one."""
    total = logsumexp(elbos)
    if not np.isfinite(total):
        return np.zeros(len(elbos))
    return np.exp(np.asarray(elbos, float) - total)
