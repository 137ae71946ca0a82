"""What discovery hands over."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from pathmix.program import Limits, Program
from pathmix.seeds import Seed
from pathmix.slp import StraightLineProgram


@dataclass(frozen=True, eq=False)
class DiscoveredPath:
    """A path, its straight-line program, and prior draws inside its region."""

    slp: StraightLineProgram
    draws: dict[str, np.ndarray]  # at least one row each
    prior_mass: float


@dataclass(frozen=True, eq=False)
class Discovered:
    """Everything that discovery found, most probable under the prior first."""

    paths: tuple[DiscoveredPath, ...]
    samples: int  # prior runs
    runs: int  # slow Python runs of the program
    dropped_mass: float  # prior mass of runs whose path was cut off by a cap


class Discovery(Protocol):
    """A way to find the paths of a program."""

    @property
    def limits(self) -> Limits: ...

    def discover(self, program: Program, seed: Seed, report: Callable[[str], None]) -> Discovered: ...
