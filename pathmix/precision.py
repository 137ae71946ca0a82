"""Scoped engine settings: float precision and BLAS threads. Nothing outlives the scope."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import jax
from threadpoolctl import threadpool_limits

Precision = Literal["float64", "float32"]


@contextmanager
def precision_scope(precision: Precision) -> Iterator[None]:
    """JAX in the given precision, in this thread only."""
    with jax.enable_x64(precision == "float64"):
        yield


class _BlasCap:
    """One BLAS thread while anybody is inside: the setting belongs to the process, not to a thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._limits: threadpool_limits | None = None

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._limits = threadpool_limits(limits=1, user_api="blas")
            self._inside += 1

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0 and self._limits is not None:
                self._limits.restore_original_limits()
                self._limits = None


_blas_cap = _BlasCap()


@contextmanager
def engine_scope(precision: Precision) -> Iterator[None]:
    """Precision, and one BLAS thread each: paths are trained in threads of their own."""
    with precision_scope(precision), _blas_cap:
        yield
