"""Batches of rows, with a way around a deadlock in jaxlib.

On CPUs, jaxlib before 0.11.2 splits a batched LAPACK call over the very thread pool that it runs in,
and waits. As many calls at once as there are threads, from paths that train side by side, wait for
ever. Calls on single matrices do not, so there batched ones become loops.
"""

from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pathmix.doors.jax import evaluate
from pathmix.engine.lapack import without_batched_calls

_FIXED_IN = (0, 11, 2)


def over_rows(function: Callable[..., Any]) -> Callable[..., Any]:
    """`jax.vmap`, except that LAPACK is called once for each row where batches of calls are not safe."""
    batched = with_safe_lapack(jax.vmap(function))

    def over(*rows: Any) -> Any:
        if len(jax.tree.leaves(rows)[0]) != 1:
            return batched(*rows)
        # One row needs no batches, and so less to compile.
        return jax.tree.map(lambda result: result[None], function(*jax.tree.map(lambda row: row[0], rows)))

    return over


def with_safe_lapack(batched: Callable[..., Any]) -> Callable[..., Any]:
    """A function without batches of LAPACK calls, where those are not safe."""
    if jax.default_backend() != "cpu" or _version() >= _FIXED_IN:
        return batched

    def careful(*rows: Any) -> Any:
        closed, shape = jax.make_jaxpr(batched, return_shape=True)(*rows)
        safe = without_batched_calls(closed.jaxpr)
        outputs = evaluate(safe, closed.consts, *jax.tree.leaves(rows))
        return jax.tree.unflatten(jax.tree.structure(shape), outputs)

    return careful


def in_chunks(batched: Callable[..., Any], rows: Any, chunk: int) -> Any:
    """A batched function applied to at most `chunk` rows at a time."""
    count = len(jax.tree.leaves(rows)[0])
    size = next(size for size in range(chunk, 0, -1) if count % size == 0)
    chunks = jax.tree.map(lambda x: x.reshape((count // size, size, *x.shape[1:])), rows)
    results = jax.lax.map(batched, chunks)
    return jax.tree.map(lambda x: x.reshape((count, *x.shape[2:])), results)


def in_batches(
    function: Callable[[tuple[jax.Array, ...]], Any], columns: Sequence[np.ndarray], size: int
) -> Any:
    """A compiled function of rows, called on batches of one size that are filled up by repetition."""
    count = len(columns[0])
    results = []
    for start in range(0, count, size):
        rows = np.arange(start, start + size) % count
        results.append(function(tuple(jnp.asarray(column[rows]) for column in columns)))
    return jax.tree.map(lambda *parts: np.concatenate(parts)[:count], *results)


def _version() -> tuple[int, ...]:
    return tuple(int(part) for part in version("jaxlib").split(".")[:3] if part.isdigit())
