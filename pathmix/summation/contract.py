"""Sums over discrete variables in log space, one variable after the other, and draws on the way back."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pathmix.summation.plan import Group


class Factor(NamedTuple):
    """A table with one axis for each of its variables, and a last one for the components of the group."""

    variables: tuple[int, ...]
    table: jax.Array


class Step(NamedTuple):
    """What a variable was summed out of; its own axis is the first."""

    variable: int
    others: tuple[int, ...]
    table: jax.Array


def eliminate(group: Group, factors: Sequence[Factor]) -> tuple[jax.Array, list[Step]]:
    """The logarithm of the sum over all variables, for each component, and the way there."""
    left, steps = list(factors), []
    for variable in group.order:
        mine = [factor for factor in left if variable in factor.variables]
        left = [factor for factor in left if variable not in factor.variables]
        others = tuple(sorted({v for factor in mine for v in factor.variables} - {variable}))
        table = jnp.zeros((group.counts[variable], *(1 for _ in others), 1))
        for factor in mine:
            table = table + _aligned(factor, (variable, *others))
        shape = (group.counts[variable], *(group.counts[other] for other in others), len(group.members))
        table = jnp.broadcast_to(table, shape)
        steps.append(Step(variable, others, table))
        left.append(Factor(others, log_sum(table)))
    total = jnp.zeros(len(group.members))
    for factor in left:
        total = total + factor.table
    return total, steps


def draw(group: Group, steps: Sequence[Step], uniforms: jax.Array) -> list[jax.Array]:
    """A value for each variable, components along the axis, given as many numbers between zero and one."""
    chosen: dict[int, jax.Array] = {}
    everywhere = np.arange(len(group.members))
    for step in reversed(steps):
        logs = step.table[(slice(None), *(chosen[other] for other in step.others), everywhere)]
        shares = jnp.cumsum(jax.nn.softmax(logs, axis=0), axis=0)
        below = jnp.sum(shares <= uniforms[group.members[:, step.variable]] * shares[-1], axis=0)
        chosen[step.variable] = jnp.minimum(below, group.counts[step.variable] - 1)
    return [chosen[variable] for variable in range(len(group.counts))]


def log_sum(table: jax.Array) -> jax.Array:
    """Over the first axis; of nothing but zeros it is minus infinity, with no slope."""
    top = jax.lax.stop_gradient(jnp.max(table, axis=0))
    base = jnp.where(jnp.isfinite(top), top, 0.0)
    total = jnp.sum(jnp.exp(table - base), axis=0)
    return jnp.where(total > 0, jnp.log(jnp.where(total > 0, total, 1.0)), -jnp.inf) + base


def _aligned(factor: Factor, scope: Sequence[int]) -> jax.Array:
    """With an axis for each variable of a scope."""
    there = [variable for variable in scope if variable in factor.variables]
    last = len(factor.variables)
    table = jnp.transpose(factor.table, [*(factor.variables.index(v) for v in there), last])
    sizes = dict(zip(there, table.shape, strict=False))
    return table.reshape([*(sizes.get(variable, 1) for variable in scope), table.shape[-1]])
