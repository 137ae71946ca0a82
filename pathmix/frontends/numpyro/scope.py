"""What must hold while NumPyro code runs under observation."""

from collections.abc import Iterator
from contextlib import contextmanager

from pathmix.doors.numpyro import unvalidated
from pathmix.frontends.statements import one_program


@contextmanager
def frontend_scope() -> Iterator[None]:
    """One program at a time, without argument validation: validation looks at random values too."""
    with one_program, unvalidated():
        yield
