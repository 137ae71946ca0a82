"""Which worker gets a batch: the one that is likely to be done with it first.

A worker that has compiled the function is spared the seconds that this takes, so functions return to where
they were compiled, until others would be done earlier all the same.
"""

import threading
from collections import OrderedDict
from collections.abc import Collection

from pathmix.engine.executables import MOST_KEPT

_FIRST_COMPILING = 1.0  # seconds, until any is known
_FIRST_COMPUTING = 0.05
_WEIGHT = 0.2  # of the latest in an average


class Placement:
    """Keeps account of what workers have compiled and have to do."""

    def __init__(self, workers: int) -> None:
        self._lock = threading.Lock()
        self._waiting = [0.0] * workers  # seconds of work that each was given and has not done
        self._compiled: list[OrderedDict[str, None]] = [OrderedDict() for _ in range(workers)]
        self._compiling, self._computing = _FIRST_COMPILING, dict[str, float]()

    def choose(self, function: str, among: Collection[int]) -> tuple[int, float]:
        """A worker for a batch, and how long it is expected to take."""
        with self._lock:
            computing = self._computing.get(function, _FIRST_COMPUTING)

            def expected(worker: int) -> float:
                known = function in self._compiled[worker]
                return computing + (0.0 if known else self._compiling)

            def done(worker: int) -> tuple[float, int, int]:
                return self._waiting[worker] + expected(worker), len(self._compiled[worker]), worker

            best = min(among, key=done)
            seconds = expected(best)
            self._waiting[best] += seconds
            self._note(best, function)
            return best, seconds

    def done(self, worker: int, expected: float) -> None:
        """A batch is no longer waited for."""
        with self._lock:
            self._waiting[worker] = max(0.0, self._waiting[worker] - expected)

    def learn(self, function: str, seconds: float, was_new: bool) -> None:
        """What a batch took, with compiling if it was new."""
        with self._lock:
            if was_new:
                self._compiling += _WEIGHT * (seconds - self._compiling)
                return
            before = self._computing.get(function, seconds)
            self._computing[function] = before + _WEIGHT * (seconds - before)

    def forget(self, worker: int) -> None:
        """It was started anew."""
        with self._lock:
            self._compiled[worker].clear()

    def _note(self, worker: int, function: str) -> None:
        kept = self._compiled[worker]
        kept[function] = None
        kept.move_to_end(function)
        if len(kept) > MOST_KEPT:
            kept.popitem(last=False)
