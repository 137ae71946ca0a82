"""Random minibatches of subsampled plates: shuffled passes over the plate, block by block."""

import numpy as np

from pathmix.seeds import Seed
from pathmix.slp import Plate


class Minibatches:
    """Index sets for each plate; a block of steps depends on nothing but the seed and its number."""

    def __init__(self, plates: tuple[Plate, ...], seed: Seed) -> None:
        self._plates = plates
        self._seed = seed

    def rows(self, block: int, steps: int) -> tuple[np.ndarray, ...]:
        """Indices for the steps of a block, one row a step, for each plate."""
        return tuple(
            _shuffled(plate, steps, self._seed.child(position, block).generator())
            for position, plate in enumerate(self._plates)
        )


def _shuffled(plate: Plate, steps: int, generator: np.random.Generator) -> np.ndarray:
    per_pass = plate.size // plate.subsample_size
    passes = [
        generator.permutation(plate.size)[: per_pass * plate.subsample_size]
        for _ in range(-(-steps // per_pass))
    ]
    return np.concatenate(passes).reshape(-1, plate.subsample_size)[:steps]
