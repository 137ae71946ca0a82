"""Cells: what the tree of decisions knows exactly of the prior probability of paths.

All paths that go the same way to the first place where a probability is not known are a cell. Cells do not
overlap, and the probability of one is a product. A path with known probabilities to its end is a cell by
itself.
"""

from collections.abc import Hashable
from dataclasses import dataclass

from pathmix.discovery.tree import Tree
from pathmix.program.path import Path


@dataclass(frozen=True)
class Cell:
    """Runs that go the same way while probabilities are known."""

    key: Hashable
    probability: float
    is_path: bool  # nothing is left open
    is_closed: bool = False  # all paths in it were seen


EVERYTHING = Cell((), 1.0, is_path=False)


def cell_of(tree: Tree, path: Path) -> Cell:
    """The cell that a path lies in."""
    probability = 1.0
    for node, way in tree.ways(path):
        chance = node.exact_chance(way) if node.is_exact else None
        if chance is None:
            return Cell(node, probability, is_path=False, is_closed=node.is_closed)
        probability *= chance
    return Cell(path, probability, is_path=True)
