"""The tree of discrete sites: what was drawn there, how probable it is, and what is left to try.

It reaches as far as probabilities are known: until a continuous value decides something, or sets the
probability of a discrete site.
"""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pathmix.discovery.cells import known_draws
from pathmix.program.path import PinnedValue
from pathmix.program.slp import Site, StraightLineProgram

Prefix = tuple[tuple[str, PinnedValue], ...]
_NOTHING = 1e-14  # prior mass: rounding
_MOST_VALUES = 2**16  # of a vector, that are listed


@dataclass
class Node:
    """A site that is drawn after some others had these values."""

    prefix: Prefix
    site: Site
    mass: float  # prior probability of coming here
    known: dict[PinnedValue, float] = field(default_factory=dict)  # values, and their probability here
    tried: set[PinnedValue] = field(default_factory=set)

    @property
    def left(self) -> float:
        """Prior mass of the values that were not seen here."""
        return self.mass * max(1.0 - math.fsum(self.known.values()), 0.0)

    def untried(self, count: int) -> list[PinnedValue]:
        """Some values that were not tried, those first that are nearest to what was seen."""
        bounds = self.site.bounds_here or self.site.bounds
        if bounds is None:
            return []
        likeliest = max(self.known, key=lambda value: self.known[value])
        new = (value for value in values_near(self.site, bounds, likeliest) if value not in self.tried)
        return list(itertools.islice(new, count))


class Tree:
    """All places that paths have come to."""

    def __init__(self) -> None:
        self.nodes: dict[Prefix, Node] = {}

    def add(self, slp: StraightLineProgram) -> None:
        prefix: Prefix = ()
        mass = 1.0
        sites, pinned = {site.name: site for site in slp.sites}, dict(slp.path.pinned)
        for name, log_probability in known_draws(slp):
            node = self.nodes.setdefault(prefix, Node(prefix, sites[name], mass))
            node.known[pinned[name]] = math.exp(log_probability)
            node.tried.add(pinned[name])
            mass *= node.known[pinned[name]]
            prefix = (*prefix, (name, pinned[name]))

    @property
    def left(self) -> float:
        """Prior mass of all that was not seen."""
        return math.fsum(node.left for node in self.nodes.values())

    def most_left(self) -> Iterator[Node]:
        """Nodes with something left, those with most first."""
        there = [node for node in self.nodes.values() if node.left > _NOTHING]
        return iter(sorted(there, key=lambda node: -node.left))


def values_near(site: Site, bounds: tuple[Any, Any], centre: PinnedValue) -> Iterator[PinnedValue]:
    """The support: from a value outwards for a number, without it, and in order for a vector."""
    low, high = (np.broadcast_to(np.asarray(bound, float), site.shape) for bound in bounds)
    if site.shape == ():
        yield from _outwards(float(low), float(high), int(centre))
        return
    if not np.all(np.isfinite(low)) or not np.all(np.isfinite(high)):
        return
    if np.sum(np.log(high - low + 1)) > math.log(_MOST_VALUES):
        return
    ranges = [range(int(a), int(b) + 1) for a, b in zip(low.ravel(), high.ravel(), strict=True)]
    for values in itertools.product(*ranges):
        yield nested(np.array(values).reshape(site.shape))


def _outwards(low: float, high: float, centre: int) -> Iterator[PinnedValue]:
    for distance in itertools.count(1):
        below, above = centre - distance, centre + distance
        if below < low and above > high:
            return
        if above <= high:
            yield above
        if below >= low:
            yield below


def nested(values: np.ndarray) -> PinnedValue:
    """An array as paths write it down."""
    return tuple(nested(row) for row in values) if values.ndim else values.item()
