"""Sums over discrete variables in log space, round by round, and draws on the way back.

Tables that are alike are rows of one array, so that a chain of any length takes few operations.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pathmix.summation.plan import Group


class Stack(NamedTuple):
    """Tables in rows: each has an axis for each of its variables, and a last one for components."""

    variables: tuple[tuple[int, ...], ...]  # by row
    tables: jax.Array


class Step(NamedTuple):
    """What variables were summed out of; after the rows, their own axis is the first."""

    variables: tuple[int, ...]
    others: np.ndarray  # by row
    tables: jax.Array


class _Factor(NamedTuple):
    stack: int
    row: int
    variables: tuple[int, ...]


def eliminate(group: Group, stacks: Sequence[Stack]) -> tuple[jax.Array, list[Step]]:
    """The logarithm of the sum over all variables, for each component, and the way there."""
    known, steps = list(stacks), list[Step]()
    left = [_Factor(s, row, vs) for s, stack in enumerate(known) for row, vs in enumerate(stack.variables)]
    for together in group.rounds:
        chosen = set(together)
        mine: dict[int, list[_Factor]] = {variable: [] for variable in together}
        rest = []
        for factor in left:
            own = chosen.intersection(factor.variables)
            (mine[own.pop()] if own else rest).append(factor)
        left = rest
        for alike in _alike(group, mine):
            step, stack = _summed(group, known, alike)
            left += [_Factor(len(known), row, variables) for row, variables in enumerate(stack.variables)]
            known.append(stack)
            steps.append(step)
    total = jnp.zeros(len(group.members))
    for number, stack in enumerate(known):
        rows = np.array([factor.row for factor in left if factor.stack == number], int)
        total = total + (jnp.sum(stack.tables[rows], axis=0) if len(rows) else 0.0)
    return total, steps


def draw(group: Group, steps: Sequence[Step], uniforms: jax.Array) -> jax.Array:
    """Values of variables, components along the second axis, given as many numbers between zero and one."""
    values = jnp.zeros((len(group.counts), len(group.members)), int)
    everywhere = np.arange(len(group.members))
    for step in reversed(steps):
        own = np.array(step.variables)
        rows = np.arange(len(own))[:, None]
        others = [values[column] for column in step.others.T]
        logs = step.tables[(rows, slice(None), *others, everywhere)]
        shares = jnp.cumsum(jax.nn.softmax(logs, axis=-1), axis=-1)
        numbers = uniforms[group.members[:, own].T]
        below = jnp.sum(shares <= (numbers * shares[..., -1])[..., None], axis=-1)
        values = values.at[own].set(jnp.minimum(below, logs.shape[-1] - 1))
    return values


def log_sum(tables: jax.Array) -> jax.Array:
    """Over the axis after the rows; of nothing but zeros it is minus infinity, with no slope."""
    top = jax.lax.stop_gradient(jnp.max(tables, axis=1))
    base = jnp.where(jnp.isfinite(top), top, 0.0)
    total = jnp.sum(jnp.exp(tables - base[:, None]), axis=1)
    return jnp.where(total > 0, jnp.log(jnp.where(total > 0, total, 1.0)), -jnp.inf) + base


_Scope = tuple[int, ...]  # a variable, and those that it meets
_Alike = list[tuple[_Scope, list[_Factor]]]


def _alike(group: Group, mine: dict[int, list[_Factor]]) -> list[_Alike]:
    """The variables of a round, those together whose tables are made in the same way."""
    found: dict[object, _Alike] = {}
    for variable, factors in mine.items():
        others = sorted({other for factor in factors for other in factor.variables} - {variable})
        scope = (variable, *others)
        ordered = sorted(factors, key=lambda factor: (_places(factor, scope), factor.stack))
        kind = (tuple(group.counts[v] for v in scope), tuple(_places(factor, scope) for factor in ordered))
        found.setdefault(kind, []).append((scope, ordered))
    return list(found.values())


def _places(factor: _Factor, scope: _Scope) -> tuple[int, ...]:
    return tuple(scope.index(variable) for variable in factor.variables)


def _summed(group: Group, known: Sequence[Stack], alike: _Alike) -> tuple[Step, Stack]:
    scope, factors = alike[0]
    counts = [group.counts[variable] for variable in scope]
    tables = jnp.zeros((1,) * (len(scope) + 2))
    for number, factor in enumerate(factors):
        own = _rows(known, [(one[number].stack, one[number].row) for _, one in alike])
        places = _places(factor, scope)
        order = [0, *(1 + axis for axis in np.argsort(places)), own.ndim - 1]
        shape = [counts[axis] if axis in places else 1 for axis in range(len(scope))]
        tables = tables + jnp.transpose(own, order).reshape(len(alike), *shape, own.shape[-1])
    tables = jnp.broadcast_to(tables, (len(alike), *counts, len(group.members)))
    others = tuple(one[1:] for one, _ in alike)
    step = Step(tuple(one[0] for one, _ in alike), np.array(others, int).reshape(len(alike), -1), tables)
    return step, Stack(others, log_sum(tables))


def _rows(known: Sequence[Stack], places: Sequence[tuple[int, int]]) -> jax.Array:
    """Rows of stacks, together."""
    parts, start = [], 0
    while start < len(places):  # those that follow each other in one stack
        end = start
        while end < len(places) and places[end][0] == places[start][0]:
            end += 1
        parts.append(known[places[start][0]].tables[np.array([row for _, row in places[start:end]])])
        start = end
    return parts[0] if len(parts) == 1 else jnp.concatenate(parts)
