"""The tree of decisions: what is known of a batch of runs after each prefix of sites and decisions.

Between two decisions nothing in a program can differ from run to run but numbers. So all runs with the same
pinned values and decisions so far come to the same place, and what was computed there for one of them, for
the whole batch at once, holds for all. A program that comes to another place hides randomness.
"""

from collections.abc import Hashable
from typing import Any

import numpy as np

from pathmix.errors import HiddenRandomnessError
from pathmix.program.source import Source, caller

_MOST_BYTES = 2**26  # of all values together; beyond, they are computed again


class Node:
    """One place after a prefix: a site, a look at a value, or the end."""

    def __init__(self, place: tuple[str, Hashable]) -> None:
        self.place = place
        self.values: np.ndarray | None = None  # of what is drawn or looked at, runs along the first axis
        self.given: frozenset[str] = frozenset()  # discrete sites behind the draw, whose values were open
        self.invalid: dict[str, np.ndarray] = {}  # runs with parameters that cannot be, by what to say
        self.source: Source | None = None  # of a look
        self.is_settled = False  # by pinned sites alone, of a look
        self.log_probabilities: dict[Hashable, float | None] = {}  # of a pinned site's values, where settled
        self.next: dict[Hashable, Node] = {}  # by what is seen here; a free site has a single one


class Tree:
    """All prefixes that runs of one batch have come to, and the values there."""

    def __init__(self) -> None:
        self._first: dict[Hashable, Node] = {}
        self._bytes = 0

    def walk(self) -> "Walk":
        """Begin a run."""
        if self._bytes > _MOST_BYTES:
            self._first, self._bytes = {}, 0
        return Walk(self, self._first)

    def keep(self, node: Node, values: np.ndarray) -> None:
        node.values = values
        self._bytes += values.nbytes


class Walk:
    """A run on its way down the tree."""

    def __init__(self, tree: Tree, first: dict[Hashable, Node]) -> None:
        self._tree = tree
        self._branches, self._branch = first, None

    def site(self, name: str) -> Node:
        """The run draws a site."""
        return self._arrive(("site", name), f"it drew the site {name!r}")

    def pin(self, name: str) -> Node:
        """The value of a discrete site begins to matter."""
        return self._arrive(("pin", name), f"it needed the value of {name!r}")

    def look(self, kind: str) -> Node:
        """The run looks at a random value."""
        return self._arrive(("look", kind), "it took another decision")

    def end(self) -> None:
        self._arrive(("end", None), "it ended")

    def take(self, node: Node, branch: Hashable = None) -> None:
        """Go on from a place, after seeing this there."""
        self._branches, self._branch = node.next, branch

    def keep(self, node: Node, values: Any) -> None:
        """Remember the values at a place."""
        self._tree.keep(node, values)

    def _arrive(self, place: tuple[str, Hashable], said: str) -> Node:
        node = self._branches.setdefault(self._branch, Node(place))
        if node.place != place:
            raise HiddenRandomnessError(f"this time {said} at {caller()}")
        return node
