"""A table of the best paths, drawn again in place while a run goes on."""

import math
import shutil
import sys
import threading
import time
from typing import Any, TextIO

import numpy as np
from scipy.special import softmax

from pathmix.target.labels import shortened

_SECONDS = 0.2  # between drawings
_MOST_ROWS = 10
_HEADERS = ("path", "weight by ELBO", "ELBO", "steps")
_ERASE_BELOW = "\x1b[J"


class Live:
    """A `Progress` that draws. What is printed meanwhile appears above the table."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lock = threading.RLock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._keep_drawing, name="pathmix table", daemon=True)
        self._begun = time.monotonic()
        self._drawn = 0  # lines
        self._stage = ""
        self._total = self._done = 0
        self._elbos: dict[str, float] = {}
        self._steps: dict[str, int] = {}

    def __enter__(self) -> "Live":
        self._before = sys.stdout, sys.stderr
        sys.stdout, sys.stderr = (_Above(s, self) if s.isatty() else s for s in self._before)
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._ended.set()
        self._thread.join()
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, _Above):
                stream.end()
        sys.stdout, sys.stderr = self._before
        with self._lock:
            self._erase()
            self._stream.flush()

    def stage(self, text: str) -> None:
        with self._lock:
            self._stage = text

    def budget(self, iterations: int) -> None:
        with self._lock:
            self._total, self._done = iterations, 0
            self._elbos, self._steps = {}, {}

    def advance(self, iterations: int, label: str, elbo: float) -> None:
        with self._lock:
            self._done += iterations
            self._elbos[label] = elbo
            self._steps[label] = self._steps.get(label, 0) + iterations

    def done(self, timings: object) -> None:
        """The posterior comes next."""

    def above(self, stream: TextIO, text: str) -> None:
        """Write lines over the table."""
        with self._lock:
            self._erase()
            stream.write(text)
            stream.flush()
            self._draw()

    def _keep_drawing(self) -> None:
        while not self._ended.wait(_SECONDS):
            with self._lock:
                self._erase()
                self._draw()

    def _erase(self) -> None:
        self._stream.write(f"\x1b[{self._drawn}F{_ERASE_BELOW}" if self._drawn else f"\r{_ERASE_BELOW}")
        self._drawn = 0

    def _draw(self) -> None:
        size = shutil.get_terminal_size()
        lines = self._lines(min(_MOST_ROWS, size.lines - 5))
        self._stream.write("".join(f"{line[: size.columns - 1]}\n" for line in lines))
        self._stream.flush()
        self._drawn = len(lines)

    def _lines(self, most: int) -> list[str]:
        seconds = int(time.monotonic() - self._begun)
        head = f"{seconds // 60}:{seconds % 60:02}  {self._stage}"
        if not self._elbos:
            return [head]
        share = f"{min(self._done / self._total, 1):.0%} of {self._total:,} iterations"
        elbos = {label: -math.inf if math.isnan(elbo) else elbo for label, elbo in self._elbos.items()}
        best = sorted(elbos, key=lambda label: -elbos[label])
        weights = dict(zip(best, _weights([elbos[label] for label in best]), strict=True))
        rows: list[tuple[str, ...]] = [_HEADERS]
        for label in best[: max(most, 1)]:
            numbers = f"{weights[label]:.4f}", f"{self._elbos[label]:.3f}", f"{self._steps[label]:,}"
            rows.append((shortened(label), *numbers))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        table = [
            "  ".join([first.ljust(widths[0]), *map(str.rjust, numbers, widths[1:])])
            for first, *numbers in rows
        ]
        hidden = len(best) - len(rows) + 1
        return [f"{head}, {share}", "", *table, *([f"... {hidden} more"] if hidden else [])]


def _weights(elbos: list[float]) -> np.ndarray:
    """What they would be if all ELBOs were as tight."""
    return softmax(elbos) if np.isfinite(elbos[0]) else np.full(len(elbos), math.nan)


class _Above:
    """A stream whose lines go above a table, as soon as they are whole."""

    def __init__(self, stream: TextIO, live: Live) -> None:
        self._stream, self._live, self._open = stream, live, ""

    def write(self, text: str) -> int:
        whole, newline, self._open = (self._open + text).rpartition("\n")
        if newline:
            self._live.above(self._stream, whole + newline)
        return len(text)

    def end(self) -> None:
        if self._open:
            self.write("\n")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
