"""Standard normal noise in a few fixed sizes.

Compiling random-number code takes longer than compiling most training loops, so the noise is an argument of
everything else. On CPUs NumPy draws it, and no more of it than is used; accelerators draw their own, with
code that is compiled once per size, for all paths.
"""

from functools import lru_cache
from typing import Any

import jax
import numpy as np

from pathmix.program.seeds import Seed

SIZES = tuple(2**power for power in (13, 16, 19, 22, 25, 28))


def noise_size(wanted: int) -> int:
    """The smallest size that holds `wanted` numbers."""
    return next((size for size in SIZES if size >= wanted), SIZES[-1])


def normals(seed: Seed, size: int, used: int | None = None) -> Any:
    """Noise of one of the sizes, of which the first numbers are used (all, unless told)."""
    if jax.default_backend() != "cpu":
        return _generator(size)(seed.key())
    noise = np.zeros(size, jax.dtypes.canonicalize_dtype(float))
    used = size if used is None else used
    noise[:used] = seed.generator().standard_normal(used)
    return noise


@lru_cache
def _generator(size: int) -> Any:
    return jax.jit(lambda key: jax.random.normal(key, (size,)))
