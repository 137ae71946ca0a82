"""Halving without barriers: who did well goes on, while others have not begun (ASHA; Li et al. 2020)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pathmix.allocation.base import Candidate
from pathmix.allocation.successive_halving import SuccessiveHalving
from pathmix.checks import check_positive_int


class Stretch(NamedTuple):
    """A piece of training: of a path, after so many before."""

    path: int
    rung: int


@dataclass(frozen=True)
class AsynchronousHalving:
    """Successive halving in which no path waits for all others, for paths that take unequal time.

    A path goes on to the next stretch of training as soon as it is in the better half of those that have come
    so far; where nobody is, another path begins. So workers are always busy, and some paths go on that would
    not if all were known: there are somewhat more iterations than the `budget`, which is what
    `SuccessiveHalving` takes.

    What is decided does not depend on who happens to be quick: the decision on a stretch knows the results of
    all but the `in_flight` stretches before it. As many can be worked on at once, and no more.

    Examples:
        >>> AsynchronousHalving(budget=1_200, keep=2).phases(paths=8)
        3
    """

    budget: int = 100_000
    keep: int = 10
    in_flight: int = field(default=64, kw_only=True)

    def __post_init__(self) -> None:
        check_positive_int("AsynchronousHalving(budget=...)", self.budget)
        check_positive_int("AsynchronousHalving(keep=...)", self.keep)
        check_positive_int("AsynchronousHalving(in_flight=...)", self.in_flight)

    def phases(self, paths: int) -> int:
        """Stretches of a path that always goes on."""
        return self._halving.phases(paths)

    def iterations(self, phases: int, active: int) -> int:
        """Of a stretch that so many paths may come to."""
        return self._halving.iterations(phases, active)

    def survivors(self, candidates: Sequence[Candidate]) -> list[int]:
        """The better half, but never fewer than `keep`."""
        return self._halving.survivors(candidates)

    def reaching(self, paths: int, rung: int) -> int:
        """Paths that come to a stretch if everything is known."""
        return max(min(self.keep, paths), math.ceil(paths / 2**rung))

    @property
    def _halving(self) -> SuccessiveHalving:
        return SuccessiveHalving(self.budget, self.keep)


class Ladder:
    """Which stretch comes next, given what is known of those before."""

    def __init__(self, allocation: AsynchronousHalving, paths: int) -> None:
        self._allocation, self._paths = allocation, paths
        self._rungs = allocation.phases(paths)
        self._known: list[dict[int, float]] = [{} for _ in range(self._rungs)]  # the ELBOs at the end of each
        self._promoted: list[set[int]] = [set() for _ in range(self._rungs)]
        self._begun = 0

    def tell(self, stretch: Stretch, elbo: float) -> None:
        """How a stretch ended; NaN where it failed."""
        self._known[stretch.rung][stretch.path] = -math.inf if math.isnan(elbo) else elbo

    def next(self) -> Stretch | None:
        """The highest that anybody may climb, or else the first of another path."""
        for rung in reversed(range(self._rungs - 1)):
            if (path := self._climber(rung)) is not None:
                self._promoted[rung].add(path)
                return Stretch(path, rung + 1)
        if self._begun == self._paths:
            return None
        self._begun += 1
        return Stretch(self._begun - 1, 0)

    def iterations(self, rung: int) -> int:
        """For each path that comes to a stretch."""
        return self._allocation.iterations(self._rungs, self._allocation.reaching(self._paths, rung))

    @property
    def last(self) -> int:
        """The rung that the best come to."""
        return self._rungs - 1

    def _climber(self, rung: int) -> int | None:
        """The best of those that are in the better half and have not gone on."""
        known = self._known[rung]
        # Of all paths, as many go on as in successive halving.
        share = self._allocation.reaching(self._paths, rung + 1) / self._allocation.reaching(
            self._paths, rung
        )
        ranked = sorted(known, key=lambda path: (-known[path], path))[: int(share * len(known) + 1e-9)]
        return next((path for path in ranked if path not in self._promoted[rung]), None)
