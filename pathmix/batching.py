"""Batches of rows, with a way around a deadlock in jaxlib.

On CPUs, jaxlib before 0.11.2 splits a batched LAPACK call over the very thread pool that it runs in,
and waits. As many calls at once as there are threads, from paths that train side by side, wait for
ever. Calls on single matrices do not, so there batched ones become loops.
"""

from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jax.extend import core as jex

_FIXED_IN = (0, 11, 2)
_LAPACK = {
    "cholesky", "triangular_solve", "lu", "eig", "eigh", "geqrf", "qr", "householder_product", "ormqr",
    "svd", "schur", "hessenberg", "tridiagonal", "tridiagonal_solve",
}  # fmt: skip


def over_rows(function: Callable[..., Any]) -> Callable[..., Any]:
    """`jax.vmap`, except that LAPACK is called once for each row where batches of calls are not safe."""
    batched = jax.vmap(function)
    if jax.default_backend() != "cpu" or _version() >= _FIXED_IN:
        return batched

    def careful(*rows: Any) -> Any:
        closed, shape = jax.make_jaxpr(batched, return_shape=True)(*rows)
        evaluate = _evaluate if _calls_lapack(closed.jaxpr) else jax.core.eval_jaxpr
        outputs = evaluate(closed.jaxpr, closed.consts, *jax.tree.leaves(rows))
        return jax.tree.unflatten(jax.tree.structure(shape), outputs)

    return careful


def in_chunks(batched: Callable[..., Any], rows: Any, chunk: int) -> Any:
    """A batched function applied to at most `chunk` rows at a time."""
    count = len(jax.tree.leaves(rows)[0])
    size = next(size for size in range(chunk, 0, -1) if count % size == 0)
    chunks = jax.tree.map(lambda x: x.reshape((count // size, size, *x.shape[1:])), rows)
    results = jax.lax.map(batched, chunks)
    return jax.tree.map(lambda x: x.reshape((count, *x.shape[2:])), results)


def in_blocks(
    function: Callable[[tuple[jax.Array, ...]], Any], columns: Sequence[np.ndarray], size: int
) -> Any:
    """A compiled function of rows, called on blocks of one size that are filled up by repetition."""
    count = len(columns[0])
    results = []
    for start in range(0, count, size):
        rows = np.arange(start, start + size) % count
        results.append(function(tuple(jnp.asarray(column[rows]) for column in columns)))
    return jax.tree.map(lambda *parts: np.concatenate(parts)[:count], *results)


def _calls_lapack(jaxpr: jex.Jaxpr) -> bool:
    return any(
        _is_batched_call(eqn) or (_is_jit(eqn) and _calls_lapack(eqn.params["jaxpr"].jaxpr))
        for eqn in jaxpr.eqns
    )


def _is_jit(eqn: jex.JaxprEqn) -> bool:
    return eqn.primitive.name in ("jit", "pjit")


def _is_batched_call(eqn: jex.JaxprEqn) -> bool:
    return eqn.primitive.name in _LAPACK and len(getattr(eqn.invars[0].aval, "shape")) > 2


def _evaluate(jaxpr: jex.Jaxpr, consts: Sequence[Any], *inputs: Any) -> list[Any]:
    values: dict[jex.Var, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    values.update(zip(jaxpr.invars, inputs, strict=True))

    def read(atom: Any) -> Any:
        return atom.val if isinstance(atom, jex.Literal) else values[atom]

    for eqn in jaxpr.eqns:
        operands = [read(atom) for atom in eqn.invars]
        values.update(zip(eqn.outvars, _apply(jaxpr, eqn, operands), strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def _apply(jaxpr: jex.Jaxpr, eqn: jex.JaxprEqn, operands: list[Any]) -> list[Any]:
    if _is_batched_call(eqn):
        return _one_by_one(eqn, operands)
    if _is_jit(eqn):
        inner = eqn.params["jaxpr"]
        return _evaluate(inner.jaxpr, inner.consts, *operands)
    inputs = [atom for atom in eqn.invars if not isinstance(atom, jex.Literal)]
    alone = jaxpr.replace(
        constvars=[],
        invars=inputs,
        outvars=list(eqn.outvars),
        eqns=[eqn],
        debug_info=jaxpr.debug_info.with_unknown_names(),
    )
    known = [v for atom, v in zip(eqn.invars, operands, strict=True) if not isinstance(atom, jex.Literal)]
    return jax.core.eval_jaxpr(alone, (), *known)


def _one_by_one(eqn: jex.JaxprEqn, operands: list[Any]) -> list[Any]:
    """A batched call as a loop over its matrices."""
    batch = operands[0].shape[:-2]
    rows = [operand.reshape((-1, *operand.shape[len(batch) :])) for operand in operands]
    results = jax.lax.map(lambda row: eqn.primitive.bind(*row, **eqn.params), rows)
    return [result.reshape((*batch, *result.shape[1:])) for result in jax.tree.leaves(results)]


def _version() -> tuple[int, ...]:
    return tuple(int(part) for part in version("jaxlib").split(".")[:3] if part.isdigit())
