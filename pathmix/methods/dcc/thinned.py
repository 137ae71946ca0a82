"""States of chains, thinned as they come, so that long runs fit into memory."""

import numpy as np


class Thinned:
    """At most `limit` times at which the states of all chains are kept, evenly spaced."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept: list[np.ndarray] = []  # (chains, dim) each
        self._stride = 1
        self._seen = 0

    def add(self, positions: np.ndarray) -> None:
        """The states of a visit (chains, samples, dim)."""
        for time in range(positions.shape[1]):
            if self._seen % self._stride == 0:
                self._kept.append(positions[:, time].copy())
            if len(self._kept) > self._limit:
                self._kept, self._stride = self._kept[::2], 2 * self._stride
            self._seen += 1

    def rows(self, left_out: float) -> np.ndarray:
        """All kept states but for the first share of them, one per row."""
        return np.concatenate(self._kept[int(left_out * len(self._kept)) :])
