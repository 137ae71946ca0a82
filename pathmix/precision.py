"""Scoped engine settings: float precision and BLAS threads. Nothing outlives the scope."""

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


@contextmanager
def engine_scope(precision: Precision) -> Iterator[None]:
    """Precision, and one BLAS thread each: paths are trained in threads of their own."""
    with precision_scope(precision), threadpool_limits(limits=1, user_api="blas"):
        yield
