"""Where the time of a run went."""

import sys
import threading
import time
from collections import defaultdict, deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial

from jax import monitoring

_COMPILED = "/jax/core/compile/backend_compile_duration"
_TRACED = ("/jax/core/compile/jaxpr_trace_duration", "/jax/core/compile/jaxpr_to_mlir_module_duration")
_REMEMBERED = 4_096  # spans of a thread, within the next one or not


@dataclass(frozen=True)
class Timings:
    """Seconds of the stages of a run, and what was compiled on the way.

    Tracing and compiling happen within the other stages, in several threads: their seconds are summed over
    threads, and may be more than what passed on the clock.
    """

    discovery: float
    initialisation: float
    training: float
    evaluation: float
    total: float
    tracing: float
    compiling: float
    paths: int
    structures: int  # different ones among the problems that were fitted
    problems: int  # that were fitted: paths that are the same problem count once
    executables: int  # compiled or loaded from the cache, whatever for
    from_cache: int  # of these
    peak_memory: int  # bytes, of the process up to now
    utilisation: float | None = None  # share of training at work, where paths do not wait for each other

    def __str__(self) -> str:
        return (
            f"{self.total:.1f} s: discovery {self.discovery:.1f}, initialisation {self.initialisation:.1f}, "
            f"training {self.training:.1f}, evaluation {self.evaluation:.1f} s (tracing {self.tracing:.1f}, "
            f"compiling {self.compiling:.1f} s in all threads); {self.paths} paths, {self.problems} "
            f"problems, {self.structures} structures, {self.executables} executables ({self.from_cache} "
            f"from the cache); peak memory {self.peak_memory / 2**20:.0f} MB"
            + ("" if self.utilisation is None else f"; {self.utilisation:.0%} of training at work")
        )


class Spans:
    """Seconds of what may happen within each other, as tracing does: they are told when they end."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._lock = threading.Lock()
        self._spans = defaultdict[int, deque[tuple[float, float]]](partial(deque, maxlen=_REMEMBERED))

    def add(self, duration: float) -> None:
        """What has just ended in this thread, in place of all that was within."""
        begun = time.perf_counter() - duration
        with self._lock:
            spans = self._spans[threading.get_ident()]
            while spans and spans[-1][0] + spans[-1][1] / 2 > begun:
                self.seconds -= spans.pop()[1]
            spans.append((begun, duration))
            self.seconds += duration


class Stopwatch:
    """Seconds by stage, and JAX's own account of tracing and compiling, as far as it is ours."""

    def __init__(self) -> None:
        self._seconds = defaultdict[str, float](float)
        self._begun = time.perf_counter()
        self._lock = threading.Lock()
        self._compiled = defaultdict[str, float](float)
        self._traced = Spans()
        self.utilisation: float | None = None

    @contextmanager
    def running(self) -> Iterator["Stopwatch"]:
        """Listen to JAX, which does not tell runs in several threads apart: each counts all."""
        monitoring.register_event_duration_secs_listener(self._on_duration)
        monitoring.register_event_listener(self._on_event)
        try:
            yield self
        finally:
            # Others may have cleared all listeners.
            with suppress(AssertionError, ValueError):
                monitoring.unregister_event_duration_listener(self._on_duration)
            with suppress(AssertionError, ValueError):
                monitoring.unregister_event_listener(self._on_event)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        begun = time.perf_counter()
        try:
            yield
        finally:
            self._seconds[name] += time.perf_counter() - begun

    def _on_duration(self, event: str, duration_secs: float, **_: object) -> None:
        if event in _TRACED:
            self._traced.add(duration_secs)
        with self._lock:
            self._compiled[event] += duration_secs
            self._compiled[f"{event} times"] += 1

    def _on_event(self, event: str, **_: object) -> None:
        with self._lock:
            self._compiled[event] += 1

    def timings(self, *, paths: int, problems: int, structures: int) -> Timings:
        seen = self._compiled
        return Timings(
            discovery=self._seconds["discovery"],
            initialisation=self._seconds["initialisation"],
            training=self._seconds["training"],
            evaluation=self._seconds["evaluation"],
            total=time.perf_counter() - self._begun,
            tracing=self._traced.seconds,
            compiling=seen[_COMPILED],
            paths=paths,
            structures=structures,
            problems=problems,
            executables=int(seen[f"{_COMPILED} times"]),
            from_cache=int(seen["/jax/compilation_cache/cache_hits"]),
            peak_memory=_peak_memory(),
            utilisation=self.utilisation,
        )


def _peak_memory() -> int:
    """Zero where the system does not tell."""
    try:
        import resource
    except ImportError:
        return 0
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used if sys.platform == "darwin" else used * 1024
