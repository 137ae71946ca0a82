"""How a budget of iterations is shared between paths."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Candidate:
    """An active path at the end of a phase."""

    index: int
    elbo: float
    steps: int


class Allocation(Protocol):
    """Phases of training; between phases some paths may be dropped."""

    @property
    def budget(self) -> int:
        """Iterations in all."""
        ...

    def phases(self, paths: int) -> int:
        """How many phases training has with so many paths."""
        ...

    def iterations(self, phases: int, active: int) -> int:
        """For each active path, in each phase."""
        ...

    def survivors(self, candidates: Sequence[Candidate]) -> list[int]:
        """Indices of the paths that go on to the next phase."""
        ...
