"""Members that can be permuted, and vectors with their members in another order."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pathmix.engine.requests import MemberFunction
from pathmix.target.target import Arguments, Target


@dataclass(frozen=True)
class Family:
    """Members that look alike: sites, or the elements of one site along an axis."""

    sites: tuple[int, ...]  # their numbers among the free sites of the target
    axis: int | None = None  # of the one site
    size: int = 0


@dataclass(frozen=True)
class Group:
    """Members whose permutation, in all families at once, changes nothing."""

    families: tuple[Family, ...]
    members: tuple[int, ...]
    key: tuple[int, int] = (0, 0)  # the family, and the element of a member, by which members are ordered

    @property
    def log_order(self) -> float:
        """The logarithm of the number of permutations."""
        return math.lgamma(len(self.members) + 1)


def usual_order(group: Group, values: Sequence[np.ndarray]) -> np.ndarray:
    """The order that members have in the mean of some draws."""
    return np.argsort([np.mean(key) for key in _keys(group, values, rows=True)])


def make_constrain(target: Target) -> MemberFunction:
    """(., arguments, vectors) -> the values of the free sites."""

    def values(_: Any, arguments: Arguments, vectors: jax.Array) -> list[jax.Array]:
        return jax.vmap(lambda u: target.coordinates.constrain(u, arguments.map)[0])(vectors)

    return values


def make_ordered(target: Target, groups: Sequence[Group]) -> MemberFunction:
    """(., arguments, vectors) -> the vectors with all members in order, and the order that each group had."""

    def one(u: jax.Array, arguments: Arguments) -> tuple[jax.Array, list[jax.Array]]:
        values, _ = target.coordinates.constrain(u, arguments.map)
        had = []
        for group in groups:
            had.append(jnp.argsort(jnp.stack(_keys(group, values))))
            values = permuted(values, group, had[-1])
        return target.coordinates.unconstrain(values, arguments.map), had

    return lambda _, arguments, vectors: jax.vmap(lambda u: one(u, arguments))(vectors)


def make_shuffled(target: Target, groups: Sequence[Group]) -> MemberFunction:
    """(., arguments, (vectors, lots)) -> the vectors with the members of each group in the order of lots."""

    def one(arguments: Arguments, u: jax.Array, lots: Sequence[jax.Array]) -> jax.Array:
        values, _ = target.coordinates.constrain(u, arguments.map)
        for group, drawn in zip(groups, lots, strict=True):
            values = permuted(values, group, jnp.argsort(drawn))
        return target.coordinates.unconstrain(values, arguments.map)

    return lambda _, arguments, given: jax.vmap(lambda u, lots: one(arguments, u, lots))(*given)


def permuted(values: Sequence[jax.Array], group: Group, order: jax.Array) -> list[jax.Array]:
    """Values with the members of a group in another order."""
    new = list(values)
    for family in group.families:
        members = jnp.stack([member_of(values, family, m) for m in group.members])[order]
        for place, member in enumerate(group.members):
            if family.axis is None:
                new[family.sites[member]] = members[place]
            else:
                (site,) = family.sites
                index = (slice(None),) * family.axis + (member,)
                new[site] = new[site].at[index].set(members[place])
    return new


def member_of(values: Sequence[Any], family: Family, member: int, *, rows: bool = False) -> Any:
    """What a member of a family is worth, in one draw or in rows of them."""
    if family.axis is None:
        return values[family.sites[member]]
    (site,) = family.sites
    return values[site][(slice(None),) * (family.axis + rows) + (member,)]


def _keys(group: Group, values: Sequence[Any], *, rows: bool = False) -> list[Any]:
    """What members are ordered by."""
    family, element = group.families[group.key[0]], group.key[1]
    found = [member_of(values, family, m, rows=rows) for m in group.members]
    return [key.reshape(*key.shape[:rows], -1)[..., element] for key in found]
