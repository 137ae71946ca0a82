"""Sees the statements (`sample`, `param`, `plate`, ...) of a library that a program runs into."""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from pathmix.errors import MixedLibrariesError
from pathmix.program.source import caller

_LIBRARIES = ("numpyro", "pyro")

# Each library keeps its handlers in one global stack, and we put handlers on both: only one thread
# may run a program at a time.
one_program = threading.RLock()


def loaded_libraries() -> tuple[str, ...]:
    """A program can only use a library that is loaded."""
    return tuple(library for library in _LIBRARIES if library in sys.modules)


def active_handlers() -> str | None:
    """The handlers of a library around the present call, in words; None if there are none."""
    with one_program:  # in another thread, they may be ours
        for library in loaded_libraries():
            if stack := _door(library).handlers():
                kinds = ", ".join(dict.fromkeys(type(handler).__name__ for handler in stack))
                return f"handlers or plates of {library} ({kinds})"
    return None


def _door(library: str) -> Any:
    """What is used of a library, which must be loaded."""
    return import_module(f"pathmix.doors.{library}")


@contextmanager
def watched(library: str, on_statement: Callable[[str], None]) -> Iterator[None]:
    """Call `on_statement` with the name of each statement that is made through the library."""
    with _door(library).watch(on_statement):
        yield


@contextmanager
def only(library: str) -> Iterator[None]:
    """Within, a statement made through the other library is an error."""
    (other,) = set(_LIBRARIES) - {library}

    def refuse(name: str) -> None:
        raise MixedLibrariesError(
            f"The program is written with {library}, but the site {name!r} at {caller()} is made with "
            f"{other}. Write the whole program with one of the two."
        )

    if other not in sys.modules:
        yield
        return
    with watched(other, refuse):
        yield
