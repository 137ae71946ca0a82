"""The phases of training: initialisation, then rounds of optimisation with paths set aside between them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from pathmix.allocation import Allocation, Candidate
from pathmix.discovery import DiscoveredPath
from pathmix.executors.guarded import guarded
from pathmix.executors.threads import Threads
from pathmix.progress import ProgressBar
from pathmix.training.donors import Donors
from pathmix.training.fit import PathFit
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
            fit.initialise(path.draws)
            return fit.smallest_density(path.followers)

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

    def train(index: int, iterations: int, donors: Donors | None = None) -> None:
        def report(steps: int, elbo: float) -> bool:
            progress.advance(steps, labels[index], elbo)
            return not executor.stopping.is_set()

        def task(fit: PathFit) -> None:
            if starts is None:
                fit.train(iterations, log_c, report)
            else:
                lent = donors.of(fit, starts.third) if donors is not None else []
                race(fit, starts, iterations, priors[index], lent, log_c, report)

        if not executor.stopping.is_set():
            guarded(task)(fits[index])

    pooled = pool(paths) if starts is not None else {}
    priors = [Prior(fit, path.draws, pooled) for fit, path in zip(fits, paths, strict=True)]
    for phase in range(phases):
        iterations = allocation.iterations(phases, len(active))
        progress.stage(f"phase {phase + 1}/{phases}: {len(active)} paths")
        if starts is None:
            executor.map(partial(train, iterations=iterations), active)
        else:
            # Two rounds: paths can learn from each other before any of them is set aside.
            for part in (iterations // 2, iterations - iterations // 2):
                donors = Donors(fits) if starts.borrow else None
                executor.map(partial(train, iterations=part, donors=donors), active)
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
