"""Random minibatches of subsampled plates: shuffled passes over the plate, block by block."""

import numpy as np

from pathmix.program.seeds import Seed
from pathmix.program.slp import Plate


class Minibatches:
    """Index sets for each plate; a block of steps depends on nothing but the seed and its number.

    A step has `count` minibatches.
    """

    def __init__(self, plates: tuple[Plate, ...], count: int, seed: Seed) -> None:
        self._plates, self._count = plates, count
        self._seed = seed

    @property
    def bytes_per_step(self) -> int:
        return 8 * self._count * sum(plate.subsample_size for plate in self._plates)

    def rows(self, block: int, steps: int) -> tuple[np.ndarray, ...]:
        """Indices for the minibatches of each step of a block, for each plate."""
        return tuple(
            _shuffled(plate, steps * self._count, self._seed.child(position, block).generator()).reshape(
                steps, self._count, -1
            )
            for position, plate in enumerate(self._plates)
        )


def _shuffled(plate: Plate, count: int, generator: np.random.Generator) -> np.ndarray:
    per_pass = plate.size // plate.subsample_size
    passes = [
        generator.permutation(plate.size)[: per_pass * plate.subsample_size]
        for _ in range(-(-count // per_pass))
    ]
    return np.concatenate(passes).reshape(-1, plate.subsample_size)[:count]
