"""The phases of training: initialisation, then rounds of optimisation with paths set aside between them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pathmix.allocation import Allocation, Candidate
from pathmix.discovery.contenders import Contender
from pathmix.engine.guarded import guarded, guarded_turns
from pathmix.engine.progress import ProgressBar
from pathmix.engine.threads import Threads
from pathmix.training.donors import Donors
from pathmix.training.fit import PathFit, Turn
from pathmix.training.pooled import Prior, pool
from pathmix.training.race import race
from pathmix.training.starts import Starts

Fitting = Contender[PathFit]


@dataclass(frozen=True)
class Schedule:
    """How iterations are shared between paths, and between starts of a path (None: a single one)."""

    allocation: Allocation
    starts: Starts | None = None


def initialise(executor: Threads, contenders: Sequence[Fitting]) -> float:
    """Start every guide at the prior of its path; returns log d_min."""

    def start(contender: Fitting) -> float | None:
        if executor.stopping.is_set():
            return None

        def task(fit: PathFit) -> float:
            return fit.initialise(contender.draws, contender.followers)

        return guarded(task)(contender.work)

    smallest = executor.map(start, contenders)
    return min((value for value in smallest if value is not None and np.isfinite(value)), default=0.0)


def optimise(
    executor: Threads,
    schedule: Schedule,
    contenders: Sequence[Fitting],
    log_c: float,
    progress: ProgressBar,
) -> None:
    """The phases of training, with the allocation's choice of paths between them."""
    active = [one for one in contenders if one.work.trainable and one.work.start is not None]
    if not active:
        return
    allocation, starts = schedule.allocation, schedule.starts
    phases = allocation.phases(len(active))
    progress.budget(allocation.budget)
    pooled = pool(contenders) if starts is not None else {}
    priors = {one: Prior(one.work, one.draws, pooled) for one in active}

    def turns(one: Fitting, iterations: int, donors: Donors | None) -> Iterator[Turn]:
        if starts is None:
            yield from one.work.train(iterations, log_c)
        else:
            lent = donors.of(one.work, starts.third) if donors is not None else []
            yield from race(one.work, starts, iterations, priors[one], lent, log_c)

    def train(one: Fitting, iterations: int, donors: Donors | None = None) -> Iterator[None]:
        for turn in guarded_turns(one.work, turns(one, iterations, donors)):
            progress.advance(turn.steps, one.label, turn.elbo)
            yield

    for phase in range(phases):
        iterations = allocation.iterations(phases, len(active))
        progress.stage(f"phase {phase + 1}/{phases}: {len(active)} paths")
        if starts is None:
            executor.take_turns([train(one, iterations) for one in active])
        else:
            # Two rounds: paths can learn from each other before any of them is set aside.
            for part in (iterations // 2, iterations - iterations // 2):
                donors = Donors([one.work for one in contenders]) if starts.borrow else None
                executor.take_turns([train(one, part, donors) for one in active])
        if phase == phases - 1 or executor.stopping.is_set():
            return
        executor.map(guarded(PathFit.estimate_elbo), [one.work for one in active])
        active = _survivors(allocation, active)
        if not active:
            return


def _survivors(allocation: Allocation, active: Sequence[Fitting]) -> list[Fitting]:
    """The paths that go on, as the allocation chooses; the others are set aside."""
    candidates = [Candidate(i, one.work.elbo, one.work.steps) for i, one in enumerate(active)]
    kept = allocation.survivors(candidates)
    for index in set(range(len(active))) - set(kept):
        active[index].work.dropped = True
    return [active[index] for index in kept if active[index].work.trainable]
