"""Successive halving again and again, with new paths in between (the paper's online algorithm)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, runtime_checkable

from pathmix.allocation.base import Allocation, Candidate
from pathmix.allocation.successive_halving import SuccessiveHalving
from pathmix.checks import check_positive_int, check_positive_number
from pathmix.errors import OptionError

_IDLE = 2  # rounds that added nothing, after which there are no more


class Round(NamedTuple):
    """Where a run stood at the end of a round."""

    seconds: float  # since training began
    log_evidence: float  # a bound on it: of all ELBOs together


@runtime_checkable
class OnlineAllocation(Allocation, Protocol):
    """An allocation whose phases are gone through again and again, with new paths in between."""

    def goes_on(self, rounds: Sequence[Round]) -> bool:
        """Whether there shall be one more."""
        ...


@dataclass(frozen=True)
class OnlineSuccessiveHalving:
    """Halving again and again, for when nobody knows how much training it takes.

    Each round shares `budget_per_round` iterations, halving until `keep` paths are left; between rounds,
    discovery looks for more. Paths are ranked by exp(alpha ELBO) / iterations: those go on that had too few
    iterations for what they promise. Small `alpha` explores more. It ends after so many `rounds`, when
    `seconds` of training are over, or when two rounds in turn have raised the evidence by less than
    `tolerance` nats. None leaves one of these out; Ctrl-C ends it in any case, with what was reached.

    Examples:
        >>> OnlineSuccessiveHalving(10_000, rounds=5).rounds
        5
    """

    budget_per_round: int = 20_000
    keep: int = 10
    alpha: float = 0.5
    rounds: int | None = field(default=None, kw_only=True)
    seconds: float | None = field(default=None, kw_only=True)
    tolerance: float | None = field(default=0.01, kw_only=True)

    def __post_init__(self) -> None:
        name = type(self).__name__
        check_positive_int(f"{name}(budget_per_round=...)", self.budget_per_round)
        check_positive_int(f"{name}(keep=...)", self.keep)
        check_positive_number(f"{name}(alpha=...)", self.alpha)
        if self.alpha > 1:
            raise OptionError(f"{name}(alpha=...) is at most 1, not {self.alpha!r}.")
        if self.rounds is not None:
            check_positive_int(f"{name}(rounds=...)", self.rounds)
        if self.seconds is not None:
            check_positive_number(f"{name}(seconds=...)", self.seconds)
        if self.tolerance is not None:
            check_positive_number(f"{name}(tolerance=...)", self.tolerance)

    @property
    def budget(self) -> int:
        """Iterations of a round."""
        return self.budget_per_round

    def phases(self, paths: int) -> int:
        """Of a round: as many as it takes to halve the paths down to `keep`."""
        return self._halving.phases(paths)

    def iterations(self, phases: int, active: int) -> int:
        """An equal share of the round's budget for each path and phase."""
        return self._halving.iterations(phases, active)

    def survivors(self, candidates: Sequence[Candidate]) -> list[int]:
        """The better half by exp(alpha ELBO) / iterations, but never fewer than `keep`."""
        return self._halving.survivors(
            [
                Candidate(one.index, self.alpha * one.elbo - math.log(max(one.steps, 1)), one.steps)
                for one in candidates
            ]
        )

    def goes_on(self, rounds: Sequence[Round]) -> bool:
        """Whether there shall be one more."""
        if self.rounds is not None and len(rounds) >= self.rounds:
            return False
        if self.seconds is not None and rounds and rounds[-1].seconds >= self.seconds:
            return False
        if self.tolerance is None or len(rounds) <= _IDLE:
            return True
        return not rounds[-1].log_evidence - rounds[-1 - _IDLE].log_evidence < self.tolerance

    @property
    def _halving(self) -> SuccessiveHalving:
        return SuccessiveHalving(self.budget_per_round, self.keep)
