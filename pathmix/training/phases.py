"""The phases of training: initialisation, then rounds of optimisation with paths set aside between them.

Paths of one structure are worked on together, in cohorts.
"""

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle

import numpy as np

from pathmix.allocation import Allocation, Candidate
from pathmix.discovery.contenders import Contender
from pathmix.discovery.kin import Kin
from pathmix.engine.executables import Executables
from pathmix.engine.guarded import guarded_asking
from pathmix.engine.members import cohorts, takes_turns
from pathmix.engine.progress import Progress
from pathmix.engine.requests import Answer, Asking, conducted, labelled
from pathmix.engine.threads import MOST_OPEN, Threads
from pathmix.training.donors import Donors
from pathmix.training.fit import PathFit
from pathmix.training.options import Turn
from pathmix.training.pooled import Prior, pool
from pathmix.training.race import race
from pathmix.training.starts import Starts

Fitting = Contender[PathFit]
Task = Callable[[Fitting], Asking[object]]

_REHEARSED_SITES = 64
FAR = 30.0  # nats below the best
_LAST_STEPS = 50


@dataclass(frozen=True)
class Schedule:
    """How iterations are shared between paths, and between starts of a path (None: a single one)."""

    allocation: Allocation
    starts: Starts | None = None


@dataclass(frozen=True)
class Workshop:
    """Where paths are worked on."""

    executor: Threads
    executables: Executables
    answer: Answer  # by the executables, or from what was kept
    kin: Kin = field(default_factory=Kin, init=False)  # of the paths that are worked on
    _seen: set[Hashable] = field(default_factory=set, init=False)
    # To and fro: what was used last is still kept.
    _direction: Iterator[int] = field(default_factory=lambda: cycle((1, -1)), init=False)

    def rehearse(self, fit: PathFit) -> None:
        """Begin to compile, beside everything else, what a new structure needs.

        Accelerators wait until it is known how many members there are, and large ones until it is known that
        they matter.
        """
        kind = (fit.target.structure, fit.guide)
        is_small = len(fit.target.sites) <= _REHEARSED_SITES
        if kind not in self._seen and fit.trainable and is_small and takes_turns():
            self._seen.add(kind)
            self.executor.begin(lambda: self.executables.answer(fit.rehearsal()))

    def in_turns(self, fittings: Sequence[Fitting], task: Task) -> None:
        """Do a task for all paths, cohort by cohort, until Ctrl-C."""
        # Each may need several executables; with fewer kept than take turns, every turn would build anew.
        most_open = max(min(self.executables.room // 2, MOST_OPEN), self.executor.count)
        self.executor.take_turns(self._cohorts(fittings, task), most_open)

    def to_the_end(self, fittings: Sequence[Fitting], task: Task) -> None:
        """Do a task for all paths, Ctrl-C or not."""
        self.executor.map(list, self._cohorts(fittings, task))

    def _cohorts(self, fittings: Sequence[Fitting], task: Task) -> list[Iterator[object]]:
        groups = cohorts(
            fittings, lambda one: (one.work.target.structure, one.work.guide), self.executor.count
        )[:: next(self._direction)]
        return [
            conducted(
                [labelled(guarded_asking(one.work, task(one)), one.label) for one in group], self.answer
            )
            for group in groups
        ]


def initialise(workshop: Workshop, contenders: Sequence[Fitting]) -> float:
    """Start every guide at the prior of its path; returns log d_min over the draws that were tried."""
    smallest: list[float] = []

    def start(one: Fitting) -> Asking[None]:
        found = yield from one.work.initialise(one.draws, one.followers)
        if np.isfinite(found):
            smallest.append(found)

    workshop.in_turns(contenders, start)
    return min(smallest, default=math.inf)


def optimise(
    workshop: Workshop,
    schedule: Schedule,
    contenders: Sequence[Fitting],
    log_c: float,
    progress: Progress,
    lenders: Sequence[Fitting] = (),
) -> None:
    """The phases of training, with the allocation's choice of paths between them.

    Starts are borrowed from `lenders`, or else from each other.
    """
    lenders = lenders or contenders
    active = [one for one in contenders if one.work.trainable and one.work.start is not None]
    if not active:
        return
    allocation, starts = schedule.allocation, schedule.starts
    phases = allocation.phases(len(active))
    progress.budget(allocation.budget)
    pooled = pool(lenders) if starts is not None else {}
    priors = {one: Prior(one.work, one.draws, pooled) for one in active}

    def train(one: Fitting, count: int, more: int, donors: Donors | None, ranked: bool) -> Asking[None]:
        iterations = count if one.work.has_settled else count + more
        yield from trained(one, starts, iterations, priors[one], donors, log_c, progress)
        if ranked:
            yield from one.work.estimate_elbo()

    everyone, given = list(active), sum(one.work.steps for one in active)
    for phase in range(phases):
        iterations = allocation.iterations(phases, len(active))
        given += iterations * len(active)
        restless = sum(not one.work.has_settled for one in active)
        # What settled paths leave is for the others.
        spare = given - iterations * restless - sum(one.work.steps for one in everyone)
        more = max(spare, 0) // max(restless, 1)
        progress.stage(f"phase {phase + 1}/{phases}: {len(active)} paths")
        # With several starts two rounds: paths can learn from each other before any of them is set aside.
        racing = starts is not None and starts.wanted(iterations // 2, agreed=False)
        rounds = (
            [(iterations // 2, more // 2), (iterations - iterations // 2, more - more // 2)]
            if racing
            else [(iterations, more)]
        )
        for number, (count, extra) in enumerate(rounds):
            borrows = starts is not None and starts.borrow
            lent = Donors([one.work for one in lenders], workshop.kin) if borrows else None
            ranked = phase < phases - 1 and number == len(rounds) - 1
            workshop.in_turns(active, partial(train, count=count, more=extra, donors=lent, ranked=ranked))
        for one in active:
            one.work.end_phase()
        if phase == phases - 1 or workshop.executor.stopping.is_set():
            return
        active = _survivors(allocation, active)
        if not active:
            return


def worth_weighing(fittings: Sequence[Fitting]) -> list[Fitting]:
    """After Ctrl-C: what was begun, unless training left it far behind. Nobody wants to wait for it."""
    begun = [one for one in fittings if one.work.was_begun]
    levels = {one: one.work.start.level(_LAST_STEPS) for one in begun if one.work.start is not None}
    best = max(levels.values(), default=-math.inf)
    return [one for one in begun if one.work.steps == 0 or levels[one] > best - FAR]


def trained(
    one: Fitting,
    starts: Starts | None,
    iterations: int,
    prior: Prior,
    donors: Donors | None,
    log_c: float,
    progress: Progress,
) -> Asking[None]:
    """A stretch of a path's training: a race between starts, where one is wanted."""

    def told(turn: Turn) -> None:
        progress.advance(turn.steps, one.label, turn.elbo)

    if starts is None or not starts.wanted(iterations, agreed=one.work.starts_agreed):
        if not one.work.has_settled:
            yield from one.work.train(iterations, log_c, told)
    else:
        lent = donors.of(one.work) if donors is not None and starts.third else []
        yield from race(one.work, starts, iterations, prior, lent, log_c, told)


def _survivors(allocation: Allocation, active: Sequence[Fitting]) -> list[Fitting]:
    """The paths that go on, as the allocation chooses; the others are set aside."""
    candidates = [Candidate(i, one.work.elbo, one.work.steps) for i, one in enumerate(active)]
    kept = allocation.survivors(candidates)
    for index in set(range(len(active))) - set(kept):
        active[index].work.dropped = True
    return [active[index] for index in kept if active[index].work.trainable]
