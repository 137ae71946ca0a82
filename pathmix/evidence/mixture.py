"""A proposal of several parts, for posteriors that are bent, or have several modes."""

from typing import NamedTuple

import numpy as np
from scipy.cluster.vq import ClusterError, kmeans2
from scipy.special import logsumexp, softmax

from pathmix.evidence.proposal import Proposal

_SWEEPS = 8
_MOST_FITTED = 4_000  # draws
_DEFENCE = 0.1  # share of one wide part over everything
_GUARD = 0.1
_WIDER = 1.3  # than the draws that a part was fitted to


class Mixture(NamedTuple):
    """Multivariate t's, and how often each is drawn from."""

    shares: np.ndarray
    parts: tuple[Proposal, ...]

    @classmethod
    def of(
        cls, vectors: np.ndarray, weights: np.ndarray, count: int, generator: np.random.Generator
    ) -> "Mixture":
        """Fitted to weighted vectors by weighted expectation maximisation, from a k-means start."""
        weights = weights / weights.sum()
        whole = Proposal.of(vectors, weights)
        if count == 1:
            return cls(np.ones(1), (whole,))
        if len(vectors) > _MOST_FITTED:
            rows = generator.choice(len(vectors), size=_MOST_FITTED, p=weights)
            vectors, weights = vectors[rows], np.full(_MOST_FITTED, 1 / _MOST_FITTED)
        chosen = generator.choice(len(vectors), size=min(len(vectors), 2_000), p=weights)
        white = np.linalg.solve(whole.factor, (vectors - whole.loc).T).T
        centres = _centres(white[chosen], count, generator)
        count = len(centres)
        distances = ((white[:, None] - centres[None]) ** 2).sum(axis=2)
        found = (np.argmin(distances, axis=1)[:, None] == np.arange(count)).astype(float)
        shares, parts = np.ones(1), (whole,)
        for _ in range(_SWEEPS):
            mass = weights @ found
            kept = [part for part in range(count) if _is_enough(weights * found[:, part], vectors.shape[1])]
            if not kept:
                break
            shares = mass[kept] / mass[kept].sum()
            parts = tuple(Proposal.of(vectors, weights * found[:, part]) for part in kept)
            logs = np.log(shares) + np.stack([part.log_prob(vectors) for part in parts], axis=1)
            found = softmax(logs, axis=1)
            count = len(kept)
        wider = tuple(Proposal(part.loc, _WIDER * part.factor) for part in (*parts, whole))
        return cls(np.append((1 - _DEFENCE) * shares, _DEFENCE), wider)

    def guarded(self, wide: Proposal) -> "Mixture":
        """With a share of something wide: what lies far off is seen, if it can be met with by chance."""
        return Mixture(np.append((1 - _GUARD) * self.shares, _GUARD), (*self.parts, wide))

    def draw(self, generator: np.random.Generator, count: int) -> np.ndarray:
        numbers = generator.multinomial(count, self.shares)
        rows = [part.draw(generator, number) for part, number in zip(self.parts, numbers, strict=True)]
        return generator.permutation(np.concatenate(rows))

    def log_prob(self, vectors: np.ndarray) -> np.ndarray:
        logs = np.log(self.shares) + np.stack([part.log_prob(vectors) for part in self.parts], axis=1)
        return np.asarray(logsumexp(logs, axis=1))


def _centres(vectors: np.ndarray, count: int, generator: np.random.Generator) -> np.ndarray:
    different = np.unique(vectors, axis=0)
    if len(different) <= count:
        return different
    try:
        return kmeans2(vectors, count, minit="++", rng=generator, missing="raise")[0]
    except ClusterError:  # some had no vector left: any will do to start with
        return vectors[generator.choice(len(vectors), size=count)]


def _is_enough(weights: np.ndarray, dim: int) -> bool:
    """For a part to be fitted to."""
    total = weights.sum()
    return total > 0 and total**2 / np.sum(weights**2) > 2 * dim
