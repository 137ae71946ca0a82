"""Standard normal noise in a few fixed sizes.

Compiling random-number code takes longer than compiling most training loops, so it is compiled
once per size, for all paths, and the noise is an argument of everything else.
"""

from functools import lru_cache
from typing import Any

import jax

from pathmix.program.seeds import Seed

SIZES = tuple(2**power for power in (13, 16, 19, 22, 25, 28))


def noise_size(wanted: int) -> int:
    """The smallest size that holds `wanted` numbers."""
    return next((size for size in SIZES if size >= wanted), SIZES[-1])


def normals(seed: Seed, size: int) -> jax.Array:
    """Noise of one of the sizes."""
    return _generator(size)(seed.key())


def warm_up() -> None:
    """Compile the smallest size, which every run needs, while something else goes on."""
    normals(Seed.of(0), SIZES[0])


@lru_cache
def _generator(size: int) -> Any:
    return jax.jit(lambda key: jax.random.normal(key, (size,)))
