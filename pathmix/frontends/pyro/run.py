"""What one forward run of a Pyro program saw."""

from dataclasses import dataclass

import numpy as np

from pathmix.program.path import Path
from pathmix.program.source import Place


class LeftPath(BaseException):
    """A forced run does not follow the path that it was meant to. No program may catch it."""


class NotWatched(BaseException):
    """A run asks what continuous sites reach, and nobody has watched. No program may catch it."""


@dataclass(frozen=True)
class Run:
    """What one forward run saw."""

    path: Path
    places: tuple[Place, ...]  # of the decisions
    site_places: dict[str, Place]
    values: dict[str, np.ndarray]
    observed: dict[str, np.ndarray]
    invalid: tuple[str, ...]  # what to say of parameters that were outside of their constraints
    scalars: frozenset[str]  # discrete sites whose elements are single numbers
    looked_at: frozenset[str]  # sites whose values Python looked at, as they are
    continuous: tuple[bool, ...]  # of the numbers that Python asked for: which stay tensors
    is_foreseen: bool = False  # without running the program
