"""What is known of the prior mass of paths, seen and unseen.

It is exact where all probabilities are known: what the seen paths lack to one. So it is where all that is
decided otherwise is a yes or no, and both were seen every time. Elsewhere the runs
must tell. The estimate is that of Good and Turing (Good 1953): as much as was seen once. The bound uses that
the unseen mass only falls: with U of it left at the end, each run found a new path with probability U or
more, so the number of paths first seen in a stretch of the runs is binomial or larger, and the upper limit of
Clopper and Pearson (1934) for its rate bounds U. The first runs find most paths, so the first quarter is left
out. (The bound of McAllester and Schapire, 2000, is of the order of 1 / sqrt(runs), this one of 1 / runs.)
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pathmix.discovery.cells import EVERYTHING, Cell
from pathmix.discovery.tree import rounding

_RISK = 0.05


@dataclass(frozen=True)
class Sighting:
    """How a path was seen: its cell (None if the path was not kept), how often, and when first."""

    cell: Cell | None
    count: int  # of prior runs
    first: int
    others: int = 0  # runs with discrete sites put in: prior runs of the cell, but not of the program

    def is_fresh(self, runs: int) -> bool:
        """Whether the first of so many prior runs that took it came late. (Others tell nothing.)"""
        return self.count > 0 and self.first >= runs // 4


@dataclass(frozen=True)
class PriorMass:
    """The prior mass of each path that was kept, and of all that were never seen."""

    masses: tuple[float, ...]
    are_exact: tuple[bool, ...]  # or estimated by shares of runs
    unseen: float
    bound: float  # with a confidence of 95%; equal to `unseen` where that is exact
    is_exact: bool


def prior_mass(
    seen: Sequence[Sighting],
    runs: int,
    *,
    is_whole: bool,
    is_open: bool = False,
    hidden: float = 0.0,
    endless: int = 0,
) -> PriorMass:
    """The account of so many prior runs; `is_whole` says that each of them ended on one of the paths.

    `is_open`: some decision came out in one way only, however improbable the other one may be, or a count has
    no end. `hidden` is the mass of known values that nobody saw. `endless` ones were given up, and nobody
    knows which paths they would have taken.
    """
    kept = [(sighting, sighting.cell) for sighting in seen if sighting.cell is not None]
    if not _consistent({cell for _, cell in kept}):
        kept = [(replace(sighting, others=0), EVERYTHING) for sighting, _ in kept]
    fresh = sum(sighting.is_fresh(runs) for sighting in seen)
    once = sum(sighting.count == 1 for sighting in seen)
    if not is_whole or len(kept) < len(seen):
        masses = tuple(cell.probability if cell.is_path else s.count / runs for s, cell in kept)
        most = _rest(cell.probability for _, cell in kept if cell.is_path)
        given_up = at_most(endless, runs) if endless else 0.0
        bound = min(most, at_most(fresh, runs - runs // 4) + given_up, 1.0)
        exact = tuple(cell.is_path for _, cell in kept)
        return PriorMass(masses, exact, min((once + endless) / runs, bound), bound, is_exact=False)
    found = _by_cell(kept, runs)
    # What rounding hides is not nothing: a likelihood may make up for it.
    if found.bound > 0 or not (is_open or hidden):
        return found
    if is_open or not all(cell.is_path for _, cell in kept):
        return replace(found, unseen=hidden, bound=max(hidden, rounding(len(kept))), is_exact=False)
    return replace(found, unseen=hidden, bound=hidden)


def _by_cell(seen: Sequence[tuple[Sighting, Cell]], runs: int) -> PriorMass:
    """Every run ended on one of the paths, so cells that were never seen have what the others lack."""
    visits, once, by_prior = Counter[Cell](), Counter[Cell](), Counter[Cell]()
    for sighting, cell in seen:
        by_prior[cell] += sighting.count
        visits[cell] += sighting.count + sighting.others
        once[cell] += sighting.count + sighting.others == 1
    rest = _rest(cell.probability for cell in visits)
    divided = [cell for cell in visits if not cell.is_path and not cell.is_closed]
    fresh = sum(sighting.is_fresh(runs) for sighting, cell in seen if cell in divided)
    # Of a cell that only led runs came to, nothing is known: all of it counts as unseen.
    within = sum(cell.probability * (once[cell] / visits[cell] if visits[cell] else 1.0) for cell in divided)
    # Prior runs tell nothing of a cell that none of them came to.
    strange = sum(cell.probability for cell in divided if by_prior[cell] == 0)
    most = min(
        sum(cell.probability for cell in divided),
        strange + at_most(fresh, runs - runs // 4) if divided else 0.0,
    )
    masses = tuple(
        cell.probability
        * (1.0 if cell.is_path else (sighting.count + sighting.others) / max(visits[cell], 1))
        for sighting, cell in seen
    )
    exact = tuple(cell.is_path for _, cell in seen)
    found = PriorMass(masses, exact, min(rest + within, 1.0), min(rest + most, 1.0), is_exact=not divided)
    return found if found.unseen <= found.bound else replace(found, unseen=found.bound)


def _consistent(cells: set[Cell]) -> bool:
    """Whether the probabilities can be those of draws; a density that is no probability gives others."""
    total = sum(cell.probability for cell in cells)
    return bool(np.isfinite(total)) and total <= 1 + rounding(len(cells))


def _rest(probabilities: Iterable[float]) -> float:
    listed = list(probabilities)
    rest = 1.0 - sum(listed)
    return rest if rest > rounding(len(listed)) else 0.0


def at_most(events: int, runs: int) -> float:
    """The upper limit of Clopper and Pearson for the rate of events, each run having one or none.

    >>> round(at_most(0, 1_000), 4)  # the rule of three
    0.003
    """
    if events >= runs:
        return 1.0
    steps = np.arange(1, events + 1)
    log_choose = np.append(0.0, np.cumsum(np.log((runs - steps + 1) / steps)))
    number = np.arange(events + 1)
    low, high = 0.0, 1.0
    for _ in range(60):
        rate = (low + high) / 2
        logs = log_choose + number * np.log(rate) + (runs - number) * np.log1p(-rate)
        low, high = (rate, high) if np.exp(logs).sum() > _RISK else (low, rate)
    return high
