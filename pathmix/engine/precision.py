"""Scoped engine settings: float precision, BLAS threads, the cache. Nothing outlives the scope."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import jax

from pathmix.engine.cache import CacheOption, CompilationCache
from pathmix.engine.undisturbed import undisturbed

with undisturbed():
    from threadpoolctl import ThreadpoolController

Precision = Literal["float64", "float32"]


@contextmanager
def precision_scope(precision: Precision) -> Iterator[None]:
    """JAX in the given precision, in this thread only."""
    with jax.enable_x64(precision == "float64"):
        yield


class _BlasCap:
    """One BLAS thread while anybody is inside: the setting belongs to the process, not to a thread.

    A BLAS that takes its threads from OpenMP is left alone: there the setting belongs to the thread that
    makes it, which is not where paths are trained, and PyTorch shares it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._limits: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._limits = _one_thread_each()
            self._inside += 1

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._limits.restore_original_limits()
                self._limits = None


def _one_thread_each() -> Any:
    if torch := sys.modules.get("torch"):
        torch.get_num_threads()  # counts those of MKL on first use, and must not count one
    loaded = _libraries(len(sys.modules))
    capped = [
        pool["filepath"]
        for pool in loaded.info()
        if pool["user_api"] == "blas" and pool.get("threading_layer") != "openmp"
    ]
    return loaded.select(filepath=capped).limit(limits=1)


@lru_cache(1)
def _libraries(modules: int) -> ThreadpoolController:
    """Looked for again when there are other modules: it takes milliseconds, and workers ask for each job."""
    del modules
    return ThreadpoolController()


_blas_cap = _BlasCap()


@dataclass(frozen=True)
class Engine:
    """How things are computed."""

    precision: Precision = "float64"
    cache: CacheOption = True  # what was compiled is kept: in the user's cache folder, in another, or not


_compilation_cache = CompilationCache()


@contextmanager
def engine_scope(engine: Engine | Precision) -> Iterator[None]:
    """Precision, and one BLAS thread each: paths are trained in threads of their own."""
    engine = Engine(engine) if isinstance(engine, str) else engine
    with precision_scope(engine.precision), _blas_cap:
        taken = _compilation_cache.enter(engine.cache)
        try:
            yield
        finally:
            if taken:
                _compilation_cache.leave()
