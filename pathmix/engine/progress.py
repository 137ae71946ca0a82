"""A progress bar for people who wait, and lines in the log "pathmix" for whoever configures it."""

import logging
import math
import sys
import threading
import time
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from tqdm import tqdm

_logger = logging.getLogger("pathmix")
_logger.addHandler(logging.NullHandler())  # silent, unless the user configures logging
_LOG_SECONDS = 10.0
_TOLD_FROM = 0.02  # of the budget: before, nobody knows how long it will take


class Progress(Protocol):
    """Who wants to be told how a run goes. Threads call `stage` and `advance` at any time."""

    def stage(self, text: str) -> None:
        """What is being done now."""
        ...

    def budget(self, iterations: int) -> None:
        """Training begins, with so many iterations in all. It may do so several times."""
        ...

    def advance(self, iterations: int, label: str, elbo: float) -> None:
        """A path has done some iterations and is now at about this ELBO."""
        ...

    def done(self, timings: object) -> None:
        """All is computed; `str(timings)` says where the time went."""
        ...


def told(progress: "bool | Progress", measure: str = "ELBO") -> AbstractContextManager[Progress]:
    """Whom a method tells: a bar of its own, or somebody that the user has."""
    if isinstance(progress, bool):
        return ProgressBar(wanted=progress, measure=measure)
    return nullcontext(progress)


class _Bar(tqdm):
    """Without the thread that tqdm keeps for bars that rarely move; it would outlive them."""

    monitor_interval = 0


class ProgressBar:
    """Phase, active paths, best path so far and its measure, and how much of the budget is spent."""

    def __init__(self, *, wanted: bool, measure: str = "ELBO") -> None:
        self._measure = measure
        visible = wanted and (sys.stderr.isatty() or "ipykernel" in sys.modules)
        self._bar = _Bar(
            total=0,
            disable=not visible,
            leave=False,
            dynamic_ncols=True,
            bar_format="{desc} |{bar}| {percentage:3.0f}% [{elapsed}<{remaining}]{postfix}",
        )
        self._lock = threading.Lock()
        self._elbos: dict[str, float] = {}
        self._best = ""
        self._total = self._done = 0
        self._stage, self._logged, self._begun = "", -math.inf, time.monotonic()

    def __enter__(self) -> "ProgressBar":
        return self

    def __exit__(self, *exception: object) -> None:
        self._bar.close()

    def budget(self, iterations: int) -> None:
        self._bar.reset(total=iterations)
        self._total, self._done, self._begun = iterations, 0, time.monotonic()

    def stage(self, text: str) -> None:
        """What is being done now."""
        with self._lock:
            self._bar.set_description_str(text)
        # Discovery says so with every path: a log wants to know now and then.
        if text.partition(":")[0] != self._stage or time.monotonic() > self._logged + _LOG_SECONDS:
            self._stage, self._logged = text.partition(":")[0], time.monotonic()
            _logger.info("%s", text)

    def done(self, timings: object) -> None:
        _logger.info("done in %s", timings)

    def advance(self, iterations: int, label: str, elbo: float) -> None:
        """A path has done some iterations and is now at about this ELBO."""
        with self._lock:
            self._elbos[label] = elbo
            if elbo >= self._elbos.get(self._best, -math.inf):
                self._best = label
            elif label == self._best:  # it fell, maybe below another
                self._best = max(self._elbos, key=lambda name: self._elbos[name])
            best = self._best
            short = best if len(best) <= 40 else best[:37] + "..."
            self._bar.set_postfix_str(
                f" best: {short} ({self._measure} {self._elbos[best]:.4g})", refresh=False
            )
            self._bar.update(iterations)
            self._done += iterations
            if time.monotonic() > self._logged + _LOG_SECONDS and self._total:
                self._log(best)

    def _log(self, best: str) -> None:
        self._logged = time.monotonic()
        share = self._done / self._total
        left = (time.monotonic() - self._begun) * (1 - share) / max(share, 1e-9)
        _logger.info(
            "%.0f%% of the budget%s; best now: %s (%s %.4g)",
            100 * share,
            f", about {left:.0f} s left" if share > _TOLD_FROM else "",
            best,
            self._measure,
            self._elbos[best],
        )
