"""A progress bar for people who wait, and silence for everyone else."""

import sys
import threading

from tqdm import tqdm


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

    def __enter__(self) -> "ProgressBar":
        return self

    def __exit__(self, *exception: object) -> None:
        self._bar.close()

    def budget(self, iterations: int) -> None:
        self._bar.reset(total=iterations)

    def stage(self, text: str) -> None:
        with self._lock:
            self._bar.set_description_str(text)

    def advance(self, iterations: int, label: str, elbo: float) -> None:
        """A path has done some iterations and is now at about this ELBO."""
        with self._lock:
            self._elbos[label] = elbo
            best = max(self._elbos, key=lambda name: self._elbos[name])
            short = best if len(best) <= 40 else best[:37] + "..."
            self._bar.set_postfix_str(
                f" best: {short} ({self._measure} {self._elbos[best]:.4g})", refresh=False
            )
            self._bar.update(iterations)
