"""Successive halving: each phase drops the worse half (Sec. 4.4 and Algorithm 1)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pathmix.allocation.base import Candidate
from pathmix.checks import check_positive_int


@dataclass(frozen=True)
class SuccessiveHalving:
    """`budget` iterations in all; halving stops when `keep` paths are left.

    Examples:
        >>> SuccessiveHalving(budget=1_200, keep=2).phases(paths=8)
        3
    """

    budget: int = 100_000
    keep: int = 10

    def __post_init__(self) -> None:
        check_positive_int("SuccessiveHalving(budget=...)", self.budget)
        check_positive_int("SuccessiveHalving(keep=...)", self.keep)

    def phases(self, paths: int) -> int:
        """As many as it takes to halve the paths down to `keep`."""
        return max(1, math.ceil(math.log2(paths / self.keep)) + 1)

    def iterations(self, phases: int, active: int) -> int:
        """An equal share of the budget for each path and phase."""
        return self.budget // (phases * active)

    def survivors(self, candidates: Sequence[Candidate]) -> list[int]:
        """The better half, but never fewer than `keep`."""
        dropped = max(0, min(len(candidates) // 2, len(candidates) - self.keep))
        ranked = sorted(candidates, key=lambda candidate: -candidate.elbo)
        return [candidate.index for candidate in ranked[: len(ranked) - dropped]]
