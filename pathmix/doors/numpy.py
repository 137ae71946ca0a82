"""NumPy beyond its public interface."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy.random.bit_generator as bit_generator

__all__ = ["seeds_taken"]


@contextmanager
def seeds_taken() -> Iterator[list[int]]:
    """Inside, the list gets the seed of each generator that is made without one."""
    # Of a compiled module, which looks the name up among its own.
    module: Any = bit_generator
    randbits, taken = module.randbits, list[int]()

    def told(bits: int) -> int:
        taken.append(randbits(bits))
        return taken[-1]

    module.randbits = told
    try:
        yield taken
    finally:
        module.randbits = randbits
