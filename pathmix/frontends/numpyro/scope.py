"""What must hold while NumPyro code runs under observation."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpyro

# NumPyro keeps its handlers in one global stack, so only one thread may run a program at a time.
_lock = threading.RLock()


@contextmanager
def frontend_scope() -> Iterator[None]:
    """One program at a time, without argument validation: validation looks at random values too."""
    with _lock, numpyro.validation_enabled(False):
        yield
