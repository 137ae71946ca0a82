"""Traced functions without batched LAPACK calls: each becomes a loop over its matrices.

Calls hide in functions within functions: branches, loops, custom derivatives, linear solves. Every
function that an equation carries is rewritten in its place, so the equation means what it meant.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp

from pathmix.doors.jax import ClosedJaxpr, Jaxpr, JaxprEqn

# What jaxlib leaves to LAPACK on CPUs, and how many axes the first operand of one call has.
_LAPACK = {
    "cholesky": 2, "eig": 2, "eigh": 2, "geqp3": 2, "geqrf": 2, "hessenberg": 2, "householder_product": 2,
    "lu": 2, "ormqr": 2, "qr": 2, "schur": 2, "svd": 2, "triangular_solve": 2, "tridiagonal": 2,
    "tridiagonal_solve": 1,
}  # fmt: skip
_JAXPRS = (Jaxpr, ClosedJaxpr)

Rewritten = dict[int, tuple[Jaxpr, Jaxpr]]  # by identity: before (kept alive) and after


def without_batched_calls(jaxpr: Jaxpr, done: Rewritten | None = None) -> Jaxpr:
    """The same function; the very same object if it makes no batched call."""
    done = {} if done is None else done
    if id(jaxpr) not in done:
        eqns = [_rewritten(eqn, done) for eqn in jaxpr.eqns]
        same = all(new is old for new, old in zip(eqns, jaxpr.eqns, strict=True))
        done[id(jaxpr)] = (jaxpr, jaxpr if same else jaxpr.replace(eqns=eqns))
    return done[id(jaxpr)][1]


def _rewritten(eqn: JaxprEqn, done: Rewritten) -> JaxprEqn:
    if _is_batched_call(eqn):
        return _loop(eqn)

    def function(leaf: Any) -> Any:
        if isinstance(leaf, ClosedJaxpr):
            inner = without_batched_calls(leaf.jaxpr, done)
            return leaf if inner is leaf.jaxpr else ClosedJaxpr(inner, leaf.consts)
        return without_batched_calls(leaf, done) if isinstance(leaf, Jaxpr) else leaf

    changed = {}
    for name, param in eqn.params.items():
        leaves, treedef = jax.tree.flatten(param, is_leaf=lambda leaf: isinstance(leaf, _JAXPRS))
        new = [function(leaf) for leaf in leaves]
        if any(after is not before for after, before in zip(new, leaves, strict=True)):
            changed[name] = treedef.unflatten(new)
    return eqn.replace(params={**eqn.params, **changed}) if changed else eqn


def _is_batched_call(eqn: JaxprEqn) -> bool:
    axes = _LAPACK.get(eqn.primitive.name)
    return axes is not None and len(_shape(eqn.invars[0].aval)) > axes


def _loop(eqn: JaxprEqn) -> JaxprEqn:
    """One equation that calls LAPACK for one matrix after another."""
    batch = _shape(eqn.invars[0].aval)[: -_LAPACK[eqn.primitive.name]]
    count = math.prod(batch)

    def one_by_one(*operands: Any) -> Any:
        rows = [operand.reshape((count, *operand.shape[len(batch) :])) for operand in operands]
        results = jax.lax.map(lambda row: eqn.primitive.bind(*row, **eqn.params), rows)
        return jax.tree.map(lambda result: jnp.reshape(result, (*batch, *result.shape[1:])), results)

    (call,) = jax.make_jaxpr(jax.jit(one_by_one))(*(atom.aval for atom in eqn.invars)).eqns
    return call.replace(invars=eqn.invars, outvars=eqn.outvars)


def _shape(aval: Any) -> tuple[int, ...]:
    return aval.shape
