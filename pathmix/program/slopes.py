"""Slopes of a graph, put together from those of its operations.

JAX differentiates every operation of a function anew, at a millisecond or two each, and programs have few
kinds of them. Here each kind is differentiated once in a process: into what computes its results and keeps
what the slope needs, and what pulls a change of the results back to its operands.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import compress
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pathmix.doors.jax import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, evaluate, literal, only, pruned
from pathmix.program.identity import operation_identity, type_identity

_MOST_KINDS = 4_096
_FUNCTIONS = (Jaxpr, ClosedJaxpr)

Function = Callable[[Sequence[Any], Sequence[Any]], list[Any]]


class Kind(NamedTuple):
    """An operation with its slope."""

    forward: ClosedJaxpr  # operands -> results, and what is kept
    backward: ClosedJaxpr  # what is kept, and changes of the smooth results -> those of the operands reached
    moves: tuple[bool, ...]  # which results change with the operands reached: not where their slope is zero


class _Step(NamedTuple):
    """An operation of a graph."""

    operands: Sequence[Any]
    results: Sequence[Var]
    reached: tuple[bool, ...]  # which operands depend on the inputs
    forward: ClosedJaxpr
    backward: ClosedJaxpr | None  # None where that changes nothing


def differentiable(jaxpr: Jaxpr, fixed: int) -> Function:
    """(fixed arguments, inputs) -> outputs, with a slope by the inputs, which the jaxpr takes last, alone."""
    inputs = jaxpr.invars[fixed:]
    steps = cache(lambda: _steps(jaxpr, inputs))

    @jax.custom_vjp
    def function(given: Sequence[Any], values: Sequence[Any]) -> list[Any]:
        return evaluate(jaxpr, (), *given, *values)

    def forward(given: Sequence[Any], values: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        known: dict[Var, Any] = dict(zip(jaxpr.invars, (*given, *values), strict=True))
        kept = []
        for step in steps():
            found = _computed(step.forward, [_read(known, atom) for atom in step.operands])
            count = len(step.results)
            known.update(zip(step.results, found[:count], strict=True))
            kept.append(found[count:])
        return [_read(known, atom) for atom in jaxpr.outvars], kept

    def backward(kept: Sequence[Any], changes: Sequence[Any]) -> tuple[None, list[Any]]:
        pulled: dict[Var, Any] = {}
        for atom, change in zip(jaxpr.outvars, changes, strict=True):
            if not isinstance(atom, Literal) and _is_smooth(atom.aval):
                _add(pulled, atom, change)
        for step, own in zip(reversed(steps()), reversed(kept), strict=True):
            smooth = [var for var in step.results if _is_smooth(var.aval)]
            if step.backward is None or not any(var in pulled for var in smooth):
                continue
            at = [pulled[var] if var in pulled else jnp.zeros(*_form(var.aval)) for var in smooth]
            found = _computed(step.backward, [*own, *at])
            for atom, change in zip(compress(step.operands, step.reached), found, strict=True):
                _add(pulled, atom, change)
        return None, [_change(pulled, var) for var in inputs]

    function.defvjp(forward, backward)
    return function


def _steps(jaxpr: Jaxpr, inputs: Sequence[Var]) -> list[_Step]:
    active = {var for var in inputs if _is_smooth(var.aval)}
    steps = []
    for eqn in jaxpr.eqns:
        reached = tuple(not isinstance(atom, Literal) and atom in active for atom in eqn.invars)
        kind = _kind_of(eqn, reached) if any(reached) else None
        if kind is not None and any(kind.moves):
            active.update(compress(eqn.outvars, kind.moves))
            steps.append(_Step(eqn.invars, eqn.outvars, reached, kind.forward, kind.backward))
        else:
            steps.append(_Step(eqn.invars, eqn.outvars, reached, ClosedJaxpr(only(eqn), ()), None))
    return steps


@dataclass(frozen=True)
class _Use:
    """An operation at operands of some types, of which some are reached."""

    identity: str
    types: tuple[str, ...]
    reached: tuple[bool, ...]
    has_64_bits: bool  # as JAX is set
    alone: Jaxpr = field(compare=False)


def _kind_of(eqn: JaxprEqn, reached: tuple[bool, ...]) -> Kind:
    types = tuple(type_identity(atom.aval) for atom in eqn.invars)
    has_64_bits = bool(getattr(jax.config, "jax_enable_x64"))
    use = _Use(operation_identity(eqn), types, reached, has_64_bits, only(eqn))
    inside = jax.tree.leaves(eqn.params, is_leaf=lambda leaf: isinstance(leaf, _FUNCTIONS))
    # Functions inside are the program's own, and may hold its data.
    has_functions = any(isinstance(leaf, _FUNCTIONS) or callable(leaf) for leaf in inside)
    return _kind.__wrapped__(use) if has_functions else _kind(use)


@lru_cache(_MOST_KINDS)
def _kind(use: _Use) -> Kind:
    alone, reached = use.alone, use.reached
    operands, results = (
        [jax.ShapeDtypeStruct(*_form(v.aval)) for v in vs] for vs in (alone.invars, alone.outvars)
    )
    smooth = [_is_smooth(result) for result in results]
    tree: Any = None

    def forward(*values: Any) -> Any:
        nonlocal tree

        def by_reached(*given: Any) -> list[Any]:
            new = iter(given)
            return evaluate(alone, (), *(next(new) if r else v for v, r in zip(values, reached, strict=True)))

        found, pull_back = jax.vjp(by_reached, *compress(values, reached))
        kept, tree = jax.tree.flatten(pull_back)
        return found, kept

    def backward(kept: Sequence[Any], changes: Sequence[Any]) -> Any:
        given = iter(changes)
        at = [
            next(given) if is_smooth else np.zeros(result.shape, jax.dtypes.float0)
            for result, is_smooth in zip(results, smooth, strict=True)
        ]
        return jax.tree.unflatten(tree, kept)(at)

    there, (_, kept) = jax.make_jaxpr(forward, return_shape=True)(*operands)
    back = jax.make_jaxpr(backward)(kept, list(compress(results, smooth)))
    _, used = pruned(back.jaxpr, [False] * len(back.jaxpr.invars))
    of_changes = iter(used[len(kept) :])
    return Kind(there, back, tuple(is_smooth and next(of_changes) for is_smooth in smooth))


def _computed(function: ClosedJaxpr, arguments: Sequence[Any]) -> list[Any]:
    return evaluate(function.jaxpr, function.consts, *arguments)


def _read(known: dict[Var, Any], atom: Any) -> Any:
    return literal(atom) if isinstance(atom, Literal) else known[atom]


def _add(changes: dict[Var, Any], var: Any, change: Any) -> None:
    changes[var] = changes[var] + change if var in changes else change


def _change(changes: dict[Var, Any], var: Any) -> Any:
    """Of an input; there is none of whole numbers."""
    if not _is_smooth(var.aval):
        return None
    return changes[var] if var in changes else jnp.zeros(*_form(var.aval))


def _form(aval: Any) -> tuple[Any, Any]:
    return aval.shape, aval.dtype


def _is_smooth(aval: Any) -> bool:
    return jnp.issubdtype(aval.dtype, np.inexact)
