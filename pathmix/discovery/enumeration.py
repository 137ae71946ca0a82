"""Find paths by the probability of their discrete sites, most probable first, without waiting for luck."""

from dataclasses import dataclass

import numpy as np

from pathmix.checks import check_positive_int, check_positive_number
from pathmix.discovery.base import Discovered, OnPath
from pathmix.discovery.search import Search
from pathmix.discovery.tree import Node, Tree
from pathmix.errors import OptionError
from pathmix.program.program import Limits, Program
from pathmix.program.seeds import Seed

_ROWS = 64  # runs of one batch
_AT_ONCE = 16  # values of a site


@dataclass(frozen=True)
class Enumeration:
    """Follow a few prior runs, then put in values of discrete sites that none of them drew.

    Sites go in the order of the prior mass that is left at them, until `cover` of all of it is seen, or
    there are `max_paths`. Counts without an end are followed as far as that takes. What continuous values
    decide is found by chance only: by runs from the prior, given the discrete sites.

    >>> Enumeration(cover=0.9999).cover
    0.9999
    """

    cover: float = 0.999
    samples: int = 300
    max_paths: int = 2_000
    max_sites: int = 10_000
    max_seconds: float = 60.0

    def __post_init__(self) -> None:
        for name in ("samples", "max_paths", "max_sites"):
            check_positive_int(f"Enumeration({name}=...)", getattr(self, name))
        check_positive_number("Enumeration(max_seconds=...)", self.max_seconds)
        if (
            isinstance(self.cover, bool)
            or not isinstance(self.cover, (int, float))
            or not 0 < self.cover <= 1
        ):
            raise OptionError(f"Enumeration(cover=...) is a share, above 0 and up to 1, not {self.cover!r}.")

    @property
    def limits(self) -> Limits:
        """What a single run of the program may do."""
        return Limits(self.max_sites, self.max_seconds)

    def discover(self, program: Program, seed: Seed, on_path: OnPath) -> Discovered:
        """Run the program forward, then along what was not seen."""
        search = Search(program, self.max_paths, on_path, seed)
        search.from_prior(self.samples)
        tree, known = Tree(), 0
        for number in range(self.max_paths):
            slps = list(search.slps.values())
            for slp in slps[known:]:
                tree.add(slp)
            known = len(slps)
            if known >= self.max_paths or tree.left <= 1 - self.cover:
                break
            chosen = next(((node, new) for node in tree.most_left() if (new := node.untried(_AT_ONCE))), None)
            if chosen is None:
                break
            node, values = chosen
            node.tried.update(values)
            search.with_values(_given(node, values), seed.child(1 << 20, number), self.samples)
        return search.result(self.samples)


def _given(node: Node, values: list) -> dict[str, np.ndarray]:
    """A batch of runs that come to a node, and draw these values there."""
    rows = np.arange(_ROWS)
    given = {name: np.broadcast_to(value, (_ROWS, *np.shape(value))) for name, value in node.prefix}
    return {**given, node.site.name: np.array(values)[rows % len(values)]}
