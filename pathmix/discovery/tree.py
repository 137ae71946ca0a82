"""The tree of decisions: where runs part, how probable each way is, and which ways nobody took.

A node is a discrete site, or a decision in which continuous values have a say, after all that happened
before. The probability of a way is exact where it depends on pinned values and constants only, and for
decisions that bound single elements whose priors are known by themselves; elsewhere prior runs estimate it.
"""

import itertools
import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import jax
import numpy as np

from pathmix.discovery.chances import chances
from pathmix.discovery.steps import Step, steps
from pathmix.program.path import Path, PinnedValue
from pathmix.program.slp import Site, StraightLineProgram
from pathmix.program.values import SiteRows

_PRECISION = (float(np.finfo(np.float32).eps), float(np.finfo(np.float64).eps))  # of the engine
_ROUNDINGS = 64  # of the sum of all probabilities, for each of them
_LITTLE = 1e-3  # of a probability that is asked for
_MOST_VALUES = 2**16  # of a vector, that are listed
_MOST_ASKED = 2**12  # values of a site, whose probabilities are asked for


class Chance(NamedTuple):
    """The probability of a way, given that a run comes to where it begins."""

    probability: float
    error: float  # zero where it is exact


@dataclass(eq=False)
class Node:
    """A place where runs part."""

    parent: "Node | None"
    way: PinnedValue  # from there to here
    step: Step  # of the first path that came here
    path: Path  # that path, as it was recorded
    slp: StraightLineProgram
    ways: "dict[PinnedValue, Node | None]" = field(default_factory=dict)  # None: to the end of a path
    exact: dict[PinnedValue, float | None] = field(default_factory=dict)
    steps: dict[PinnedValue, Step] = field(default_factory=dict)  # of the first path that went each way
    visits: Counter[PinnedValue] = field(default_factory=Counter)  # prior runs
    tried: set[PinnedValue] = field(default_factory=set)
    never: set[PinnedValue] = field(default_factory=set)  # values that cannot be drawn
    is_discrete: bool = True  # discrete sites alone lead here
    was_forced: bool = False  # the other side of a decision was looked for
    mass: float = 1.0  # prior probability of coming here, exact or estimated
    is_closed: bool = False  # there are no other ways, here or at any place that comes after

    @property
    def site(self) -> Site | None:
        """The discrete site that is drawn here; None at a decision."""
        return self.slp.sites[self.step.number] if self.step.is_site else None

    @property
    def is_exact(self) -> bool:
        """Whether all ways seen have exact probabilities."""
        return all(self.exact_chance(way) is not None for way in self.ways)

    @property
    def is_complete(self) -> bool:
        """Whether there are no other ways."""
        if not self.step.is_site:
            return self.step.is_implied or (self.step.is_binary and len(self.ways) == 2)
        without = self.never if self.is_exact else ()
        return len(self.ways) + len(without) == self._values or (self._is_hidden and self._hidden == 0)

    @property
    def _is_hidden(self) -> bool:
        """Whether the ways that were seen have all the probability, up to rounding."""
        return self.is_exact and self._rest <= rounding(len(self.ways))

    @property
    def _hidden(self) -> float:
        """The probability of what rounding hides; what that may be, where it is not known."""
        if self._rare is None:
            return rounding(len(self.ways)) if self._is_lattice else 0.0
        gone = self.ways.keys() | self.never
        return math.fsum(chance for value, chance in self._rare.items() if value not in gone)

    @cached_property
    def _rare(self) -> dict[PinnedValue, float] | None:
        """Values that nobody saw once the others had all the probability; None where they are not known."""
        if self._bounds is None or self._values - len(self.ways) > _MOST_ASKED:
            return None
        values = self._near(_MOST_ASKED, without=self.ways.keys() | self.never)
        are_all = len(values) == self._values - len(self.ways) - len(self.never)
        return chances(self.slp, self.step.number, values) if are_all else None

    @property
    def hides(self) -> list[PinnedValue]:
        """The values that rounding hides, where there is an end to them."""
        if not self.step.is_site or self.is_complete or not self._is_hidden or math.isinf(self._values):
            return []
        return self._near(_MOST_ASKED, without=self.tried | self.never)

    @property
    def is_known(self) -> bool:
        """Whether the probability of what nobody saw is, too."""
        if not self.is_exact or not self.step.is_site or not self._is_hidden:
            return self.is_exact
        return self._rare is not None or not self._is_lattice

    @property
    def _is_lattice(self) -> bool:
        """Whether each element can be any whole number from some on, maybe to some other."""
        return self._bounds is not None and bool(np.all(np.isfinite(self._bounds[0])))

    @cached_property
    def _values(self) -> float:
        """How many a discrete site can take, at most; infinite where that is not known."""
        if self.site is None or self._bounds is None:
            return math.inf
        low, high = (np.broadcast_to(np.asarray(bound, float), self.site.shape) for bound in self._bounds)
        return float(np.prod(high - low + 1.0))

    @property
    def _bounds(self) -> tuple[Any, Any] | None:
        return None if self.site is None else self.site.bounds_here or self.site.bounds

    def exact_chance(self, way: PinnedValue) -> float | None:
        """The probability of a way, if it is known; that of a no is also what a yes lacks to one."""
        known = self.exact.get(way)
        if known is None and self.step.is_binary:
            other = [p for one, p in self.exact.items() if one != way and p is not None]
            return 1.0 - other[0] if other else None
        return known

    def chance(self, way: PinnedValue) -> Chance:
        """The probability of a way, with the error of its estimate."""
        known = self.exact_chance(way)
        if known is not None:
            return Chance(known, 0.0)
        runs = self.visits.total()
        share = self.visits[way] / runs if runs else 0.0
        # With the rule of succession, so that what was seen in all runs, or in none, is not taken for sure.
        likely = (self.visits[way] + 1) / (runs + 2)
        return Chance(share, math.sqrt(likely * (1 - likely) / (runs + 3)))

    def likely(self, way: PinnedValue) -> float:
        """The probability of a way; of those that are not known, each has one run more than it had."""
        known = self.exact_chance(way)
        if known is not None:
            return known
        return (1 - self.unseen_share) * (self.visits[way] + 1) / (self.visits.total() + len(self.ways))

    @property
    def left(self) -> float:
        """Prior mass of the ways that were not seen, as far as that is known; else what one run might be."""
        return self.mass * self.unseen_share

    @property
    def unseen_share(self) -> float:
        """Of the runs that come here."""
        if self.is_complete:
            return 0.0
        if self.step.is_site and self._is_hidden:
            return self._hidden
        return self._rest if self.is_exact else 1 / (self.visits.total() + 2)

    @property
    def _rest(self) -> float:
        return max(1.0 - math.fsum(self.exact_chance(way) or 0.0 for way in self.ways), 0.0)

    @property
    def is_open(self) -> bool:
        """Whether a decision came out in one way only, and the other was not looked for."""
        return not self.step.is_site and not self.was_forced and not self.is_complete

    def untried(self, count: int) -> list[PinnedValue]:
        """Some values of a discrete site that were not tried, those nearest to what was seen first."""
        return self._near(count, without=self.tried | self.never)

    def unseen(self, count: int) -> list[PinnedValue]:
        """Some that no path has, whether they were tried or not."""
        return self._near(count, without=self.ways.keys() | self.never)

    def _near(self, count: int, without: Collection[PinnedValue]) -> list[PinnedValue]:
        if self.site is None or self._bounds is None:
            return []
        likeliest = max(self.ways, key=lambda way: self.chance(way).probability)
        near = values_near(self.site, self._bounds, likeliest)
        rare = self.__dict__.get("_rare")  # once it was asked for
        return list(
            itertools.islice(
                (one for one in near if one not in without and (rare is None or one in rare)), count
            )
        )


class Tree:
    """All places that paths have come to."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self._root: Node | None = None
        self._ways: dict[Path, list[tuple[Node, PinnedValue]]] = {}

    def add(self, path: Path, slp: StraightLineProgram, draws: SiteRows) -> None:
        """A path, as it was recorded, given prior draws inside its region."""
        node, ways = self._root, list[tuple[Node, PinnedValue]]()
        for step in steps(slp, draws):
            if node is None:
                parent, way = ways[-1] if ways else (None, None)
                node = Node(parent, way, step, path, slp)
                node.is_discrete = parent is None or (parent.step.is_site and parent.is_discrete)
                node.never |= set(slp.sites[step.number].never) if step.is_site else set()
                self.nodes.append(node)
                if parent is None:
                    self._root = node
                else:
                    parent.ways[way] = node
            node.ways.setdefault(step.outcome, None)
            node.steps.setdefault(step.outcome, step)
            node.tried.add(step.outcome)
            if node.exact.get(step.outcome) is None:
                node.exact[step.outcome] = step.probability
            ways.append((node, step.outcome))
            node = node.ways[step.outcome]
        self._ways[path] = ways

    def rule_out(self, slp: StraightLineProgram, draws: SiteRows) -> None:
        """A value that was put in, and is never drawn: remember it where it was."""
        node = self._root
        for step in steps(slp, draws):
            if node is None:
                return
            if step.is_site and step.probability == 0:
                node.never.add(step.outcome)
                return
            node = node.ways.get(step.outcome)

    def weigh(self, visits: Mapping[Path, int]) -> None:
        """Find masses, and what is closed, given how many prior runs took each path."""
        for node in self.nodes:
            node.visits.clear()
        for path, ways in self._ways.items():
            for node, way in ways:
                node.visits[way] += visits.get(path, 0)
        for node in self.nodes:  # parents come first
            if node.parent is not None:
                node.mass = node.parent.mass * node.parent.chance(node.way).probability
        for node in reversed(self.nodes):
            node.is_closed = node.is_complete and all(
                child is None or child.is_closed for child in node.ways.values()
            )

    def ways(self, path: Path) -> list[tuple[Node, PinnedValue]]:
        """The places that a path comes to, and where it goes from each."""
        return self._ways[path]

    def novelty(self, values: Mapping[str, PinnedValue], enough: float) -> float:
        """The probability that a run with these values of discrete sites takes a path that was not seen.

        Where it is larger than `enough`, something above that.
        """
        found, places = 0.0, [(self._root, 1.0)]
        while places and found < enough:
            node, reach = places.pop()
            if node is None:
                continue
            given = values.get(node.step.place) if node.step.is_site else None
            if given is None:
                found += reach * node.unseen_share
                ways = [(child, reach * node.likely(way)) for way, child in node.ways.items()]
                places += [(child, reach) for child, reach in ways if reach > enough * _LITTLE]
            elif given in node.ways:
                places.append((node.ways[given], reach))
            else:
                found += reach
        return found

    @property
    def left(self) -> float:
        """Prior mass of all that was not seen, and may be looked for."""
        return math.fsum(node.left for node in self.nodes if not node.was_forced)

    def is_open_along(self, path: Path) -> bool:
        """Whether the other side of a decision of the path was neither seen nor looked for."""
        return any(node.is_open for node, _ in self._ways[path])

    def most_left(self) -> list[Node]:
        """Nodes with something left, those with most first. What rounding hides of a count has no end."""
        places = [node for node in self.nodes if node.is_known or not node.is_exact]
        there = [(node.left, node) for node in places if not node.was_forced]
        return [node for left, node in sorted(there, key=lambda one: -one[0]) if left > 0]

    @property
    def hidden(self) -> float:
        """Prior mass of values that nobody saw, whether or not it is more than rounding of all mass."""
        return math.fsum(node.left for node in self.nodes if node.step.is_site and node.is_exact)

    @property
    def is_open(self) -> bool:
        """Whether a decision came out in one way only, or a count may go on where rounding hides it."""
        return any(
            not node.is_complete and not (node.step.is_site and node.is_known)
            for node in self.nodes
            if not node.step.is_site or node.is_exact
        )


def rounding(count: int) -> float:
    """Of a sum of so many probabilities."""
    return _ROUNDINGS * (count + 1) * _PRECISION[bool(getattr(jax.config, "jax_enable_x64"))]


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
