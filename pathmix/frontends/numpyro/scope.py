"""What must hold while NumPyro code runs under observation."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpyro
from numpyro.distributions import Distribution

from pathmix.frontends.statements import one_program


@contextmanager
def frontend_scope() -> Iterator[None]:
    """One program at a time, without argument validation: validation looks at random values too."""
    with one_program, unvalidated():
        yield


@contextmanager
def unvalidated() -> Iterator[None]:
    """Without validation. The library's own context manager alone would leave a default of its own behind."""
    before = Distribution._validate_args
    try:
        with numpyro.validation_enabled(False):
            yield
    finally:
        Distribution.set_default_validate_args(before)
