"""Members that can be permuted, and values with their members in another order."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


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
    return np.argsort(np.mean(_keys(group, values), axis=0))


def order_of(group: Group, values: Sequence[np.ndarray]) -> np.ndarray:
    """The order that members have, row by row."""
    return np.argsort(_keys(group, values), axis=1, kind="stable")


def permuted(values: Sequence[np.ndarray], group: Group, order: np.ndarray) -> list[np.ndarray]:
    """Rows of values with the members of a group in another order."""
    new = list(values)
    for family in group.families:
        members = np.stack([member_of(values, family, m) for m in group.members], axis=1)
        members = np.take_along_axis(members, order.reshape(*order.shape, *(1,) * (members.ndim - 2)), axis=1)
        for place, member in enumerate(group.members):
            if family.axis is None:
                new[family.sites[member]] = members[:, place]
            else:
                (site,) = family.sites
                if new[site] is values[site]:
                    new[site] = values[site].copy()
                new[site][_index(family, member)] = members[:, place]
    return new


def member_of(values: Sequence[np.ndarray], family: Family, member: int) -> np.ndarray:
    """What a member of a family is worth, in rows of draws."""
    if family.axis is None:
        return values[family.sites[member]]
    (site,) = family.sites
    return values[site][_index(family, member)]


def _index(family: Family, member: int) -> tuple[slice | int, ...]:
    assert family.axis is not None
    return (slice(None),) * (family.axis + 1) + (member,)


def _keys(group: Group, values: Sequence[np.ndarray]) -> np.ndarray:
    """What members are ordered by, in a column each."""
    family, element = group.families[group.key[0]], group.key[1]
    found = [member_of(values, family, m) for m in group.members]
    return np.stack([key.reshape(len(key), -1)[:, element] for key in found], axis=1)
