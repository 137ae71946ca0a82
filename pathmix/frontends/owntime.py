"""The time that a program itself has taken: neither waiting nor compiling counts."""

import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import Any

from jax import monitoring

_COMPILING = "/jax/core/compile/"  # tracing, lowering and compiling of JAX's functions


class OwnTime:
    """Processor time of this thread since it was entered, without what JAX spent on compilation.

    A busy machine makes a run wait and not work, and whatever is compiled now is not compiled in the next
    run, so neither says that a program has no end. JAX tells when it begins to compile, as a scalar, and
    when it is done, as a duration; it listens in all threads, and for as long as this is entered.
    """

    def __enter__(self) -> "OwnTime":
        self._thread, self._nested = threading.get_ident(), 0
        self._compiling = 0.0
        self._entered, self._start = time.perf_counter(), time.thread_time()
        monitoring.register_scalar_listener(self._begin)
        monitoring.register_event_duration_secs_listener(self._end)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # Others may have cleared all listeners.
        with suppress(AssertionError, ValueError):
            monitoring.unregister_scalar_listener(self._begin)
        with suppress(AssertionError, ValueError):
            monitoring.unregister_event_duration_listener(self._end)

    def exceeds(self, seconds: float) -> bool:
        """Asked at every site. It is no more than what the clock says, which takes no call of the system."""
        return time.perf_counter() - self._entered > seconds and self.seconds() > seconds

    def seconds(self) -> float:
        return time.thread_time() - self._start - self._compiling

    def _begin(self, event: str, value: float, **_: Any) -> None:
        if self._is_own(event):
            self._nested += 1
            if self._nested == 1:
                self._began = time.thread_time()

    def _end(self, event: str, duration_secs: float, **_: Any) -> None:
        if self._is_own(event) and self._nested > 0:
            self._nested -= 1
            if self._nested == 0:
                self._compiling += time.thread_time() - self._began

    def _is_own(self, event: str) -> bool:
        return event.startswith(_COMPILING) and threading.get_ident() == self._thread
