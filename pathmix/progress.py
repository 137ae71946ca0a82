"""A progress bar for people who wait, and silence for everyone else."""

import sys
import threading

from tqdm import tqdm


class ProgressBar:
    """Phase, active paths, best path so far and its ELBO, and how much of the budget is spent."""

    def __init__(self, *, wanted: bool) -> None:
        visible = wanted and (sys.stderr.isatty() or "ipykernel" in sys.modules)
        self._bar = tqdm(
            total=0,
            disable=not visible,
            leave=False,
            dynamic_ncols=True,
            bar_format="{desc} |{bar}| {percentage:3.0f}% [{elapsed}<{remaining}]{postfix}",
        )
        self._lock = threading.Lock()

    def __enter__(self) -> "ProgressBar":
        return self

    def __exit__(self, *exception: object) -> None:
        self._bar.close()

    def budget(self, iterations: int) -> None:
        self._bar.reset(total=iterations)

    def stage(self, text: str) -> None:
        with self._lock:
            self._bar.set_description_str(text)

    def best(self, label: str, elbo: float) -> None:
        with self._lock:
            short = label if len(label) <= 40 else label[:37] + "..."
            self._bar.set_postfix_str(f" best: {short} (ELBO {elbo:.4g})")

    def advance(self, iterations: int) -> None:
        with self._lock:
            self._bar.update(iterations)
