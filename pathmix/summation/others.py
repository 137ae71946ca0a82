"""Values of the discrete sites that a site meets: all together where they are few enough, else one by one."""

import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from pathmix.summation.plan import SummedSite

_MOST_MET = 8  # elements of one site that one variable meets, to be told apart

Near = dict[int, set[int]]  # for each variable of a site, those that it meets


class Axis(NamedTuple):
    """Elements of a site that have the same value: no variable meets two of them."""

    input: int
    elements: np.ndarray  # whether they are among them
    values: np.ndarray


class Others(NamedTuple):
    axes: tuple[Axis, ...]
    is_known: bool  # all that a variable meets is on some axis of its own

    def together(self) -> int:
        """How many settings they have."""
        return math.prod(len(axis.values) for axis in self.axes)

    def settings(self, *, together: bool) -> np.ndarray:
        """In rows, the place of a value on each axis; -1 leaves it as it was drawn."""
        if together:
            return np.array(list(product(*(range(len(axis.values)) for axis in self.axes))), int).reshape(
                self.together(), len(self.axes)
            )
        return np.array([[-1] * len(self.axes), *self._in_turn()], int)

    def _in_turn(self) -> Iterator[list[int]]:
        for chosen in dict.fromkeys(axis.input for axis in self.axes):  # all elements of a site alike
            mine = [axis.input == chosen for axis in self.axes]
            for value in range(len(self.axes[mine.index(True)].values)):
                yield [value if own else -1 for own in mine]
        for place, axis in enumerate(self.axes):
            for value in range(len(axis.values)):
                yield [value if other == place else -1 for other in range(len(self.axes))]


def others(place: int, sites: Sequence[SummedSite], near: Near) -> Others:
    """Of the site at a place. Those without an end stay as they were drawn."""
    first = np.cumsum([0, *(site.size for site in sites)])
    axes, is_known = list[Axis](), True
    for number, site in enumerate(sites):
        met = [
            sorted(one - int(first[number]) for one in group if first[number] <= one < first[number + 1])
            for group in near.values()
        ]
        most = max(map(len, met), default=0)
        if most == 0:
            continue
        if number == place or not site.values:
            is_known = False
            continue
        is_known = is_known and most <= _MOST_MET
        colours = _apart(site.size, met) if most <= _MOST_MET else np.zeros(site.size, int)
        values = site.low + np.arange(site.values)
        axes += [
            Axis(site.input, (colours == colour).reshape(site.shape), values)
            for colour in range(int(colours.max()) + 1)
        ]
    return Others(tuple(axes), is_known)


def moved_together(place: int, sites: Sequence[SummedSite], near: Near) -> list[np.ndarray]:
    """The elements of a site in parts, of which no two elements meet."""
    first = sum(site.size for site in sites[:place])
    size = sites[place].size
    pairs = [
        [variable - first, other - first]
        for variable, group in near.items()
        for other in group
        if first <= other < first + size
    ]
    colours = _apart(size, pairs)
    return [colours == colour for colour in range(int(colours.max()) + 1)]


def _apart(size: int, groups: Sequence[Sequence[int]]) -> np.ndarray:
    """A colour for each element, such that those of a group have different ones."""
    beside: list[set[int]] = [set() for _ in range(size)]
    for group in groups:
        for element in group:
            beside[element].update(group)
    colours = np.zeros(size, int)
    for element in range(size):
        taken = {int(colours[other]) for other in beside[element] if other < element}
        colours[element] = next(colour for colour in range(len(taken) + 1) if colour not in taken)
    return colours
