"""The phases of training: initialisation, then rounds of optimisation with paths set aside between them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pathmix.allocation import Allocation, Candidate
from pathmix.discovery import DiscoveredPath
from pathmix.engine.guarded import guarded, guarded_turns
from pathmix.engine.progress import ProgressBar
from pathmix.engine.threads import Threads
from pathmix.training.donors import Donors
from pathmix.training.fit import PathFit, Turn
from pathmix.training.pooled import Prior, pool
from pathmix.training.race import race
from pathmix.training.starts import Starts


@dataclass(frozen=True)
class Schedule:
    """How iterations are shared between paths, and between starts of a path (None: a single one)."""

    allocation: Allocation
    starts: Starts | None = None


def initialise(executor: Threads, fits: Sequence[PathFit], paths: Sequence[DiscoveredPath]) -> float:
    """Start every guide at the prior of its path; returns log d_min."""

    def start(position: int) -> float | None:
        path = paths[position]
        if executor.stopping.is_set():
            return None

        def task(fit: PathFit) -> float:
            return fit.initialise(path.draws, path.followers)

        return guarded(task)(fits[position])

    smallest = executor.map(start, range(len(fits)))
    return min((value for value in smallest if value is not None and np.isfinite(value)), default=0.0)


def optimise(
    executor: Threads,
    schedule: Schedule,
    fits: Sequence[PathFit],
    paths: Sequence[DiscoveredPath],
    labels: Sequence[str],
    log_c: float,
    progress: ProgressBar,
) -> None:
    """The phases of training, with the allocation's choice of paths between them."""
    active = [i for i, fit in enumerate(fits) if fit.trainable and fit.start is not None]
    if not active:
        return
    allocation, starts = schedule.allocation, schedule.starts
    phases = allocation.phases(len(active))
    progress.budget(allocation.budget)

    def turns(index: int, iterations: int, donors: Donors | None) -> Iterator[Turn]:
        if starts is None:
            yield from fits[index].train(iterations, log_c)
        else:
            lent = donors.of(fits[index], starts.third) if donors is not None else []
            yield from race(fits[index], starts, iterations, priors[index], lent, log_c)

    def train(index: int, iterations: int, donors: Donors | None = None) -> Iterator[None]:
        for turn in guarded_turns(fits[index], turns(index, iterations, donors)):
            progress.advance(turn.steps, labels[index], turn.elbo)
            yield

    pooled = pool(paths) if starts is not None else {}
    priors = [Prior(fit, path.draws, pooled) for fit, path in zip(fits, paths, strict=True)]
    for phase in range(phases):
        iterations = allocation.iterations(phases, len(active))
        progress.stage(f"phase {phase + 1}/{phases}: {len(active)} paths")
        if starts is None:
            executor.take_turns([train(index, iterations) for index in active])
        else:
            # Two rounds: paths can learn from each other before any of them is set aside.
            for part in (iterations // 2, iterations - iterations // 2):
                donors = Donors(fits) if starts.borrow else None
                executor.take_turns([train(index, part, donors) for index in active])
        if phase == phases - 1 or executor.stopping.is_set():
            return
        executor.map(lambda index: guarded(PathFit.estimate_elbo)(fits[index]), active)
        candidates = [Candidate(i, fits[i].elbo, fits[i].steps) for i in active]
        kept = allocation.survivors(candidates)
        for index in set(active) - set(kept):
            fits[index].dropped = True
        active = [index for index in kept if fits[index].trainable]
        if not active:
            return
