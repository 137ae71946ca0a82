"""Standard normal noise in a few fixed sizes.

Compiling random-number code takes longer than compiling most training loops, so the noise is an argument of
everything else. On CPUs NumPy draws it, and no more of it than is used; accelerators draw their own, with
code that is compiled once per size, for all paths.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jax
import numpy as np

from pathmix.program.seeds import Seed

SIZES = tuple(2**power for power in (13, 16, 19, 22, 25, 28))


def noise_size(wanted: int) -> int:
    """The smallest size that holds `wanted` numbers."""
    return next((size for size in SIZES if size >= wanted), SIZES[-1])


@dataclass(frozen=True)
class Normals:
    """Noise of one of the sizes, of which the first numbers are used; drawn where it is needed."""

    seed: Seed
    size: int
    used: int

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.size,)

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(jax.dtypes.canonicalize_dtype(float))

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        del copy  # the answer is always new
        noise = np.zeros(self.size, dtype or self.dtype)
        noise[: self.used] = self.seed.generator().standard_normal(self.used)
        return noise

    def on_device(self) -> jax.Array:
        return _generator(self.size)(self.seed.key())


def normals(seed: Seed, size: int) -> Any:
    """Noise of one of the sizes, now."""
    noise = Normals(seed, size, size)
    return np.asarray(noise) if jax.default_backend() == "cpu" else noise.on_device()


@lru_cache
def _generator(size: int) -> Any:
    return jax.jit(lambda key: jax.random.normal(key, (size,)))
