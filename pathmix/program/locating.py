"""Which path of a program the values of one run belong to."""

from typing import Any

import numpy as np

from pathmix.errors import RunawayProgramError, ValueLookupError
from pathmix.program.path import Path
from pathmix.program.program import Program
from pathmix.program.seeds import Seed
from pathmix.program.wishes import OutsideSupport, Wishes


def path_at(program: Program, values: dict[str, np.ndarray], *, supported: bool = True) -> Path | None:
    """The path, as recorded; None where the program fails with the values, or they are off a support.

    Supports are looked at only if values must be `supported`.
    """
    wishes = Wishes({n: v[None] for n, v in values.items()}, complete=True, supported=supported)
    try:
        return next(iter(program.frontend.explore(program, Seed.of(0), np.ones(1, bool), wishes=wishes))).path
    except (ValueLookupError, RunawayProgramError, Warning):
        raise
    except (OutsideSupport, Exception):  # no run that ended so has become a path
        return None


def as_numbers(name: str, value: Any) -> np.ndarray:
    """A value that the user gives: a number, an array, a tensor."""
    value = value.detach().cpu() if hasattr(value, "detach") else value
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise ValueLookupError(f"The value of {name!r} is not a number or an array of numbers: {value!r}.")
    return array
