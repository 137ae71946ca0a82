"""Training without phases: stretches of paths follow each other as an `AsynchronousHalving` says."""

import threading
import time
from collections.abc import Sequence
from contextlib import closing

from pathmix.allocation.asynchronous import AsynchronousHalving, Ladder, Stretch
from pathmix.engine.guarded import guarded_asking
from pathmix.engine.progress import Progress
from pathmix.engine.requests import Asking, conducted, labelled
from pathmix.training.phases import Fitting, Schedule, Workshop, trained
from pathmix.training.pooled import Prior, pool


def optimise_unsynchronised(
    workshop: Workshop,
    allocation: AsynchronousHalving,
    schedule: Schedule,
    contenders: Sequence[Fitting],
    log_c: float,
    progress: Progress,
) -> float | None:
    """Train all paths; returns the share of the time in which threads had something to do."""
    active = [one for one in contenders if one.work.trainable and one.work.start is not None]
    if not active:
        return None
    starts, ladder = schedule.starts, Ladder(allocation, len(active))
    pooled = pool(active) if starts is not None else {}
    priors = {one: Prior(one.work, one.draws, pooled) for one in active}
    line = _Line(ladder, allocation.in_flight)
    progress.budget(allocation.budget)
    progress.stage(f"training: {len(active)} paths")
    begun = time.perf_counter()

    def train(one: Fitting, stretch: Stretch) -> Asking[None]:
        yield from trained(one, starts, ladder.iterations(stretch.rung), priors[one], None, log_c, progress)
        if stretch.rung < ladder.last:
            yield from one.work.estimate_elbo()
        one.work.end_phase()

    def work(thread: int) -> float:
        """Until there is nothing left to do; the seconds of waiting."""
        del thread  # all do the same
        idle = 0.0
        while True:
            waited = time.perf_counter()
            found = line.next(workshop.executor.stopping)
            idle += time.perf_counter() - waited
            if found is None:
                return idle
            number, stretch = found
            one = active[stretch.path]
            asking = labelled(guarded_asking(one.work, train(one, stretch)), one.label)
            with closing(conducted([asking], workshop.answer)) as turns:
                for _ in turns:
                    if workshop.executor.stopping.is_set():
                        break
            line.done(number, one.work.elbo if one.work.trainable else float("nan"))

    idle = workshop.executor.map(work, range(workshop.executor.count))
    for path in line.dropped(len(active)):
        active[path].work.dropped = True
    return 1 - sum(idle) / (len(idle) * (time.perf_counter() - begun))


class _Line:
    """Stretches in the order in which they are decided on.

    Results are told to the ladder in that order too, when the next decision is due to know them: so decisions
    are the same whoever is quick.
    """

    def __init__(self, ladder: Ladder, in_flight: int) -> None:
        self._ladder, self._in_flight = ladder, in_flight
        self._stretches: list[Stretch] = []
        self._elbos: dict[int, float] = {}
        self._told = 0  # stretches whose results the ladder knows
        self._changed = threading.Condition()

    def next(self, stopping: threading.Event) -> tuple[int, Stretch] | None:
        """The next stretch and its number, once it can be decided on; None if there are no more."""
        with self._changed:
            while not stopping.is_set():
                if len(self._stretches) - self._told < self._in_flight:
                    if (stretch := self._ladder.next()) is not None:
                        self._stretches.append(stretch)
                        self._changed.notify_all()
                        return len(self._stretches) - 1, stretch
                    if self._told == len(self._stretches):
                        self._changed.notify_all()
                        return None
                if self._told in self._elbos:
                    self._ladder.tell(self._stretches[self._told], self._elbos[self._told])
                    self._told += 1
                else:
                    self._changed.wait(0.2)  # or until Ctrl-C
            return None

    def done(self, number: int, elbo: float) -> None:
        with self._changed:
            self._elbos[number] = elbo
            self._changed.notify_all()

    def dropped(self, paths: int) -> list[int]:
        """Those that did not come to the end."""
        last = {stretch.path for stretch in self._stretches if stretch.rung == self._ladder.last}
        return [path for path in range(paths) if path not in last]
