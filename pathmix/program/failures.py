"""Runs that the program itself ended with an error, such as an `assert` on a random value."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pathmix.program.source import Source


@dataclass(frozen=True, eq=False)
class FailedRun:
    """The error of a run, where it was raised, and which runs of the batch end in the same way."""

    error: Exception
    source: Source
    site: str | None  # the last one before
    followed: np.ndarray
    sites: int  # drawn before
    ended: int = 0  # runs of the batch before, without an error

    def __str__(self) -> str:
        first_line = str(self.error).strip().partition("\n")[0]
        said = f"{type(self.error).__name__}: {first_line}".removesuffix(": ")
        return f"{said} at {self.source}{self.after},"

    @property
    def after(self) -> str:
        return "" if self.site is None else f", after the site {self.site!r}"


OnFailure = Callable[[FailedRun], None]


def tell(run: FailedRun, on_failure: OnFailure | None) -> None:
    """The error itself where nobody is to be told."""
    if on_failure is None:
        raise run.error
    on_failure(run)
