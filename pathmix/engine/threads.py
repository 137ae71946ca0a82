"""Run a task for many paths in threads. XLA compiles and runs outside the interpreter lock."""

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from typing import TypeVar

from pathmix.engine.precision import Precision, precision_scope

Item = TypeVar("Item")
Result = TypeVar("Result")
_ENDED = object()
MOST_OPEN = 128  # tasks that take turns


class Threads:
    """A pool of threads; Ctrl-C is noticed in the main thread and passed on through `stopping`."""

    def __init__(self, threads: int | None, precision: Precision) -> None:
        self.count = threads or _cores()
        self._pool = ThreadPoolExecutor(self.count, "pathmix")
        self._precision: Precision = precision
        self._background: list[Future[None]] = []
        self.stopping = threading.Event()

    def __enter__(self) -> "Threads":
        return self

    def __exit__(self, *exception: object) -> None:
        self.stopping.set()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def begin(self, task: Callable[[], object]) -> None:
        """Start a task that nobody waits for; what it returns is not kept."""

        def alone(_: None) -> None:
            task()

        self._background = [future for future in self._background if not future.done()]
        self._background.append(self._pool.submit(self._scoped(alone), None))

    def _scoped(self, task: Callable[[Item], Result]) -> Callable[[Item], Result]:
        """Precision is a setting of each thread."""

        def scoped(item: Item) -> Result:
            with precision_scope(self._precision):
                return task(item)

        return scoped

    def take_turns(self, tasks: Sequence[Iterator[object]], most_open: int = MOST_OPEN) -> None:
        """Advance tasks by a step each, in turns, until all have ended; Ctrl-C stops them between steps.

        Of very many, some wait until others have ended: what each of them has compiled cannot all be kept.
        """
        waiting: SimpleQueue[Iterator[object]] = SimpleQueue()
        later: SimpleQueue[Iterator[object]] = SimpleQueue()
        for number, task in enumerate(tasks):
            (waiting if number < most_open else later).put(task)

        def work(_: int) -> None:
            # Who finds nothing waiting is not needed again: there are never more tasks than now.
            while True:
                try:
                    task = waiting.get_nowait()
                except Empty:
                    return
                if self.stopping.is_set():
                    getattr(task, "close")()
                elif next(task, _ENDED) is not _ENDED:
                    waiting.put(task)
                    continue
                with suppress(Empty):
                    waiting.put(later.get_nowait())

        self.map(work, range(min(self.count, len(tasks))))

    def map(self, task: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """The results in order. A first Ctrl-C lets running tasks end early; a second one raises."""
        futures = [self._pool.submit(self._scoped(task), item) for item in items]
        while True:
            try:
                wait(futures)
                return [future.result() for future in futures]
            except KeyboardInterrupt:
                if self.stopping.is_set():
                    raise
                self._stop()

    def _stop(self) -> None:
        self.stopping.set()
        for future in self._background:
            future.cancel()

    @contextmanager
    def attentive(self, keeps: Callable[[], bool]) -> Iterator[None]:
        """Ctrl-C does not break off the main thread either, once there is something to keep."""

        def note(*_: object) -> None:
            if self.stopping.is_set():
                raise KeyboardInterrupt
            self._stop()
            # Python drops what is raised inside of a finalizer; then this ends where it is looked at next.
            if not keeps():
                raise KeyboardInterrupt

        is_main = threading.current_thread() is threading.main_thread()
        if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            yield  # others decide what Ctrl-C does
            return
        signal.signal(signal.SIGINT, note)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
