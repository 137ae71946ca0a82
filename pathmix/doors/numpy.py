"""NumPy beyond its public interface."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any

import numpy.random.bit_generator as bit_generator

__all__ = ["seeds_taken"]

_alone = RLock()


@contextmanager
def seeds_taken() -> Iterator[list[int]]:
    """Inside, the list gets the seed of each generator that is made without one."""
    # Of a compiled module, which looks the name up among its own.
    module: Any = bit_generator
    with _alone:
        randbits, taken = module.randbits, list[int]()

        def told(bits: int) -> int:
            taken.append(randbits(bits))
            return taken[-1]

        module.randbits = told
        try:
            yield taken
        finally:
            module.randbits = randbits
