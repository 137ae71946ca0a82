"""How wide the proposals of importance sampling are.

Two covariances take turns. The wide one is that of all states of all chains, doubled: a normal target
then keeps the weights bounded, also where the chains say too little. The narrow one is what a single
chain sees, on average: where chains sit in separate modes, the wide one hits none of them. Mixed in
one denominator, the pair is about as good as the better of both.

States are pooled over visits, for one visit tells little about a covariance; those of about the first
half are forgotten, for chains start at the prior. The states of one chain in one visit count as one
when off-diagonal entries are shrunk. Coordinates along which no chain has moved keep the prior's scale.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

_WIDER = 2.0  # times the covariance of all states
_LARGEST_MATRIX = 100  # dimensions; diagonal beyond
_STILL = 1e-12  # of the prior's variance


class Factors(NamedTuple):
    """Factors of the wide and the narrow covariance: matrices, or vectors for diagonal ones."""

    roots: tuple[jax.Array, jax.Array]
    inverses: tuple[jax.Array, jax.Array]
    log_dets: tuple[jax.Array, jax.Array]


@dataclass(frozen=True)
class _Sums:
    visits: int
    states: int  # of each chain
    first: np.ndarray  # (chains, dim)
    second: np.ndarray  # (dim, dim), or (dim,) where only the diagonal is kept

    def __add__(self, other: "_Sums") -> "_Sums":
        return _Sums(
            self.visits + other.visits,
            self.states + other.states,
            self.first + other.first,
            self.second + other.second,
        )


class Spread:
    """The covariances of a path's chains, visit by visit."""

    def __init__(self, origin: np.ndarray, scales: np.ndarray) -> None:
        self._origin, self._scales = origin, scales
        self._older: _Sums | None = None
        self._newer: _Sums | None = None
        self._visits = 0

    def add(self, positions: np.ndarray) -> None:
        """Take in the states of a visit (chains, samples, dim)."""
        centred = np.asarray(positions, float) - self._origin
        rows = centred.reshape(-1, centred.shape[2])
        full = rows.shape[1] <= _LARGEST_MATRIX
        second = rows.T @ rows if full else np.sum(np.square(rows), axis=0)
        sums = _Sums(1, centred.shape[1], centred.sum(axis=1), second)
        self._visits += 1
        if self._visits & (self._visits - 1) == 0:  # a power of two: the window moves on
            self._older, self._newer = self._newer, sums
        else:
            assert self._newer is not None
            self._newer = self._newer + sums

    def factors(self) -> Factors:
        assert self._newer is not None
        sums = self._newer if self._older is None else self._newer + self._older
        chains = len(sums.first)
        total = chains * sums.states
        mean, means = sums.first.sum(axis=0) / total, sums.first / sums.states
        if sums.second.ndim == 1:
            whole = sums.second / total - np.square(mean)
            within = sums.second / total - np.mean(np.square(means), axis=0)
        else:
            whole = sums.second / total - np.outer(mean, mean)
            within = sums.second / total - means.T @ means / chains
        count = chains * sums.visits
        pairs = [self._factor(whole, count, _WIDER), self._factor(within, count, 1.0)]
        roots, inverses, log_dets = zip(*pairs, strict=True)
        return Factors(roots, inverses, log_dets)

    def _factor(
        self, covariance: np.ndarray, count: int, wider: float
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        """A root of the covariance, its inverse, and its log-determinant."""
        diagonal = covariance if covariance.ndim == 1 else np.diag(covariance)
        still = ~(diagonal > _STILL * np.square(self._scales))
        scales = np.sqrt(np.where(still, np.square(self._scales), diagonal))
        if covariance.ndim == 1:
            root = np.sqrt(wider) * scales
            return jnp.asarray(root), jnp.asarray(1 / root), jnp.asarray(np.sum(np.log(root)))
        dim = len(scales)
        correlation = covariance / np.outer(scales, scales) * (count / (count + dim))
        correlation[still] = correlation[:, still] = 0.0
        np.fill_diagonal(correlation, 1.0)
        standard = np.linalg.cholesky(correlation)
        root = np.sqrt(wider) * scales[:, None] * standard
        inverse = np.linalg.inv(standard) / (np.sqrt(wider) * scales)
        log_det = np.sum(np.log(np.diag(root)))
        return jnp.asarray(root), jnp.asarray(inverse), jnp.asarray(log_det)
