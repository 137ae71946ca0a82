"""Random minibatches of subsampled plates: a new shuffle of the plate for every pass."""

import numpy as np

from pathmix.seeds import Seed
from pathmix.slp import Plate


class Minibatches:
    """A stream of index sets for each plate; the same seed gives the same stream."""

    def __init__(self, plates: tuple[Plate, ...], seed: Seed) -> None:
        self._plates = plates
        self._generator = seed.generator()
        self._left: list[np.ndarray] = [np.zeros(0, int) for _ in plates]

    def next(self, steps: int) -> tuple[np.ndarray, ...]:
        """Indices for the next steps, one row a step, for each plate."""
        return tuple(self._draw(i, plate, steps) for i, plate in enumerate(self._plates))

    def _draw(self, position: int, plate: Plate, steps: int) -> np.ndarray:
        rows = []
        left = self._left[position]
        while len(rows) < steps:
            if len(left) < plate.subsample_size:
                left = self._generator.permutation(plate.size)
            rows.append(left[: plate.subsample_size])
            left = left[plate.subsample_size :]
        self._left[position] = left
        return np.stack(rows)
