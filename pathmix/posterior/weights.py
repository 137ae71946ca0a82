"""Weights of paths from their evidences or ELBOs (Proposition 1), and how sure they are."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

import numpy as np
from scipy import special

Weighting = Literal["evidence", "elbo", "stacking"]

_SIMULATIONS = 4_000
_UNKNOWN = 3.0  # nats: an error that nobody knows


def logsumexp(values: Sequence[float] | np.ndarray) -> float:
    array = np.asarray(values, float)
    top = np.max(array, initial=-np.inf)
    return float(top + np.log(np.sum(np.exp(array - top)))) if np.isfinite(top) else -np.inf


def global_elbo(elbos: Sequence[float], weights: Sequence[float]) -> float:
    """The ELBO of the mixture, E_q(k)[L_k - log q(k)] (Eq. 6); logsumexp of L_k at the best weights.

    Paths without an ELBO are left out, which leaves a bound.
    """
    local, share = np.asarray(elbos, float), np.asarray(weights, float)
    used = (share > 0) & (local != -np.inf)
    share = share[used] / max(share[used].sum(), 1e-300)
    return float(np.sum(share * (local[used] - np.log(share)))) if np.any(used) else -np.inf


def path_weights(logs: Sequence[float] | np.ndarray) -> np.ndarray:
    """Softmax of log-evidences, or of ELBOs, where it is the best there is; all zero if none is finite."""
    finite = np.where(np.isnan(np.asarray(logs, float)), -np.inf, np.asarray(logs, float))
    total = logsumexp(finite.tolist())
    return np.exp(finite - total) if np.isfinite(total) else np.zeros(len(finite))


def weight_errors(logs: Sequence[float], errors: Sequence[float]) -> tuple[list[float], float]:
    """Standard errors of the weights, and of the logarithm of the sum, for errors of log-evidences."""
    weights, totals = simulated_weights(logs, errors)
    return weights.std(axis=0).tolist(), float(totals.std())


def simulated_weights(logs: Sequence[float], errors: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    """Weights as they may be, for errors of log-evidences, and logarithms of their sums; a row for each time.

    Twins were fitted once and err together: they have the same evidence, to the last bit.
    """
    return _simulated(tuple(map(float, logs)), tuple(map(float, errors)))


@lru_cache(1)  # questions come one after another, and a thousand paths take a third of a second
def _simulated(logs: tuple[float, ...], errors: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray]:
    pairs = np.stack([logs, errors], axis=1) if logs else np.zeros((0, 2))
    usable = np.isfinite(pairs[:, 0])
    weights = np.zeros((_SIMULATIONS, len(pairs)))
    if not np.any(usable):
        return weights, np.full(_SIMULATIONS, np.nan)
    unique, place = np.unique(pairs[usable], axis=0, return_inverse=True)
    scale = np.where(np.isfinite(unique[:, 1]), np.minimum(unique[:, 1], _UNKNOWN), _UNKNOWN)
    noise = np.random.default_rng(0).standard_normal((_SIMULATIONS, len(unique)))
    simulated = (unique[:, 0] + scale * noise)[:, place.ravel()]
    weights[:, usable] = special.softmax(simulated, axis=1)
    weights.flags.writeable = False
    return weights, np.asarray(special.logsumexp(simulated, axis=1))
