"""Find paths by the probability of their discrete sites, most probable first, without waiting for luck."""

from dataclasses import dataclass, field

import numpy as np

from pathmix.checks import check_positive_number
from pathmix.discovery.base import Discovered, OnPath
from pathmix.discovery.runs import PriorRuns
from pathmix.discovery.search import Search, SearchExpedition
from pathmix.discovery.tree import Node
from pathmix.errors import OptionError
from pathmix.program.path import PinnedValue
from pathmix.program.program import Program
from pathmix.program.seeds import Seed

_ROWS = 64  # runs of one batch
_AT_ONCE = 16  # values of a site
_COPIES, _FEWEST = 4, 16  # runs for each value, and in all: what comes after may differ
_LATELY = 8  # steps, by which it is told whether there is an end
_FEW_PLACES = 128  # with values less probable than rounding: the data may want them all the same


@dataclass(frozen=True)
class Enumeration(PriorRuns):
    """Follow a few prior runs, then put in what none of them drew.

    These are values of discrete sites, and values of continuous ones on the other side of a decision. Places
    go in the order of the prior mass that is left at them, until `cover` of all of it is seen, or there are
    `max_paths`. Counts without an end are followed as far as that takes.

    Examples:
        >>> Enumeration(cover=0.9999).cover
        0.9999
    """

    samples: int = 300
    max_paths: int = 2_000
    cover: float = field(default=0.999, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_cover("Enumeration", self.cover)

    def discover(self, program: Program, seed: Seed, on_path: OnPath) -> Discovered:
        """Run the program forward, then along what was not seen."""
        return self.begin(program, seed, on_path).result()

    def begin(self, program: Program, seed: Seed, on_path: OnPath) -> SearchExpedition:
        """The same, if more runs may be wanted later."""
        search = Search(program, self.max_paths, on_path, seed)
        search.from_prior(self.samples)
        enumerate_values(search, self.cover, self.max_paths)
        return SearchExpedition(search, self.samples)


def check_cover(owner: str, cover: float) -> None:
    check_positive_number(f"{owner}(cover=...)", cover)
    if cover > 1:
        raise OptionError(f"{owner}(cover=...) is a share of at most 1, not {cover!r}.")


def enumerate_values(search: Search, cover: float, most: int, structures: int | None = None) -> None:
    """Put in values that were not seen, until `cover` of the prior mass is, or there are `most` paths.

    With a number of structures, while there are no more of them, and it seems that `most` paths will do.
    Where few values are left with next to no probability, these are tried.
    """
    _enumerate(search, cover, most, structures)
    places = [node for node in search.weighed_tree().nodes if node.hides]
    for node in places if len(places) <= _FEW_PLACES else ():
        if len(search.slps) < most and not search.too_much:
            _try(search, node, node.hides[:_AT_ONCE], len(search.slps), fewest=1)
    search.weighed_tree()


def _enumerate(search: Search, cover: float, most: int, structures: int | None) -> None:
    tree = search.weighed_tree()
    past: list[tuple[int, float]] = []  # paths known, and what was left, step by step
    for number in range(most):
        known, left = len(search.slps), tree.left
        past.append((known, left))
        if known >= most or left <= 1 - cover or search.too_much:
            return
        if structures is not None:
            before, last = past[max(number - _LATELY, 0)]
            hopeless = (known - before) * (left - 1 + cover) > (last - left) * (most - known)
            if len(search.structures) > structures or (number >= _LATELY and hopeless):
                return
        if not any(_went_on(search, node, number) for node in tree.most_left()):
            return
        search.weighed_tree()


def _went_on(search: Search, node: Node, number: int) -> bool:
    """Whether there was anything to try at a place."""
    if node.site is None:
        return search.force(node, search.seed.child(1 << 20, number))
    values = node.untried(_AT_ONCE)
    if values:
        _try(search, node, values, number)
    return bool(values)


def _try(search: Search, node: Node, values: list[PinnedValue], number: int, fewest: int = _FEWEST) -> None:
    """Runs with values put in at a discrete site."""
    assert node.site is not None
    node.tried.update(values)
    rows = np.arange(_ROWS)
    given = {name: column[rows % len(column)] for name, column in search.leading_to(node).items()}
    given[node.site.name] = np.array(values)[rows % len(values)]
    enough = min(max(_COPIES * len(values), fewest), _ROWS)
    seed = search.seed.child(1 << 20, number)
    search.with_values(given, seed, rows=enough, counted=node.is_discrete)
