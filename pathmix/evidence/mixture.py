"""A proposal of several parts, for posteriors that are bent, or have several modes."""

from typing import NamedTuple

import numpy as np
from scipy.cluster.vq import ClusterError, kmeans2

from pathmix.evidence.proposal import Proposal, Proposals

_SWEEPS = 8
_MOST_FITTED = 4_000  # draws
_DEFENCE = 0.1  # share of one wide part over everything
_GUARD = 0.1
_WIDER = 1.3  # than the draws that a part was fitted to


class Mixture(NamedTuple):
    """Multivariate t's, and how often each is drawn from."""

    shares: np.ndarray
    parts: Proposals

    @classmethod
    def alone(cls, proposal: Proposal) -> "Mixture":
        """Of one part."""
        return cls(np.ones(1), Proposals(proposal.loc[None], proposal.factor[None]))

    @classmethod
    def of(
        cls, vectors: np.ndarray, weights: np.ndarray, count: int, generator: np.random.Generator
    ) -> "Mixture":
        """Fitted to weighted vectors by weighted expectation maximisation, from a k-means start."""
        weights = weights / weights.sum()
        whole = Proposal.of(vectors, weights)
        if count == 1:
            return cls.alone(whole)
        if len(vectors) > _MOST_FITTED:
            rows = generator.choice(len(vectors), size=_MOST_FITTED, p=weights)
            vectors, weights = vectors[rows], np.full(_MOST_FITTED, 1 / _MOST_FITTED)
        chosen = generator.choice(len(vectors), size=min(len(vectors), 2_000), p=weights)
        white = np.linalg.solve(whole.factor, (vectors - whole.loc).T).T
        centres = _centres(white[chosen], count, generator)
        count = len(centres)
        # Of squared distances to the centres, what differs between them.
        distances = np.sum(centres**2, axis=1)[:, None] - 2 * centres @ white.T
        found = (np.argmin(distances, axis=0) == np.arange(count)[:, None]).astype(float)
        shares, parts = cls.alone(whole)
        for _ in range(_SWEEPS):
            each = weights * found
            each = each[_are_enough(each, vectors.shape[1])]
            if len(each) == 0:
                break
            mass = each.sum(axis=1)
            shares, parts = mass / mass.sum(), Proposals.of(vectors, each)
            logs = np.log(shares)[:, None] + parts.log_prob(vectors)
            found = np.exp(logs - _log_sum(logs))
        mixture = cls(shares, parts)._with(_DEFENCE, whole)
        return mixture._replace(parts=mixture.parts._replace(factors=_WIDER * mixture.parts.factors))

    def guarded(self, wide: Proposal) -> "Mixture":
        """With a share of something wide: what lies far off is seen, if it can be met with by chance."""
        return self._with(_GUARD, wide)

    def joined(self, other: Proposal) -> "Mixture":
        """With another part, of the same share."""
        return self._with(0.5, other)

    def _with(self, share: float, other: Proposal) -> "Mixture":
        parts = Proposals(
            np.concatenate([self.parts.locs, other.loc[None]]),
            np.concatenate([self.parts.factors, other.factor[None]]),
        )
        return Mixture(np.append((1 - share) * self.shares, share), parts)

    def draw(self, generator: np.random.Generator, count: int) -> np.ndarray:
        rows = self.parts.draw(generator, generator.multinomial(count, self.shares))
        return generator.permutation(rows)

    def log_prob(self, vectors: np.ndarray) -> np.ndarray:
        return _log_sum(np.log(self.shares)[:, None] + self.parts.log_prob(vectors))


def _log_sum(logs: np.ndarray) -> np.ndarray:
    """Over parts."""
    top = np.maximum(logs.max(axis=0), np.finfo(logs.dtype).min)  # beyond all numbers there is nothing
    return np.log(np.sum(np.exp(logs - top), axis=0)) + top


def _centres(vectors: np.ndarray, count: int, generator: np.random.Generator) -> np.ndarray:
    different = np.unique(vectors, axis=0)
    if len(different) <= count:
        return different
    try:
        return kmeans2(vectors, count, minit="++", rng=generator, missing="raise")[0]
    except ClusterError:  # some had no vector left: any will do to start with
        return vectors[generator.choice(len(vectors), size=count)]


def _are_enough(weights: np.ndarray, dim: int) -> np.ndarray:
    """Which rows are, for a part to be fitted to."""
    return weights.sum(axis=1) ** 2 > 2 * dim * np.sum(weights**2, axis=1)
