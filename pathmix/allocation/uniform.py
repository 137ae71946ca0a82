"""The same number of iterations for every path."""

from collections.abc import Sequence
from dataclasses import dataclass

from pathmix.allocation.base import Candidate
from pathmix.checks import check_positive_int


@dataclass(frozen=True)
class Uniform:
    """`budget` iterations in all, shared evenly in one phase.

    Examples:
        >>> Uniform(budget=1_000).iterations(phases=1, active=4)
        250
    """

    budget: int = 100_000

    def __post_init__(self) -> None:
        check_positive_int("Uniform(budget=...)", self.budget)

    def phases(self, paths: int) -> int:
        """One."""
        return 1

    def iterations(self, phases: int, active: int) -> int:
        """An equal share of the budget."""
        return self.budget // active

    def survivors(self, candidates: Sequence[Candidate]) -> list[int]:
        """All of them."""
        return [candidate.index for candidate in candidates]
