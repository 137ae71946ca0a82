"""Paths of grammars as expressions: `splits: 1(0, 1(0, 0))` for `splits_s=1, splits_sl=0, splits_sr=1, ...`.

Sites nest where their names do: what is left of a name without its kind (`op` of `op_el`, `kind` of
`e.l.kind`) goes on from what is left of another.
"""

import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

_FEWEST = 3  # nodes, that are worth a tree
_PARTS = re.compile(r"(.+)[._/]([^._/]+)")

Kinds = dict[str, dict[str, tuple[str, Any]]]  # places of each kind, with the names and values there


def nested(pinned: Sequence[tuple[str, Any]], shown: Callable[[Any], str]) -> tuple[set[str], str] | None:
    """The names of the sites that nest, and the expression that they make; None if none do."""
    parts = [(match.groups(), item) for item in pinned if (match := _PARTS.fullmatch(item[0]))]
    before, after = Kinds(), Kinds()
    for (left, right), item in parts:
        before.setdefault(left, {})[right] = item
        after.setdefault(right, {})[left] = item
    for kinds in (after, before):
        trees = {kind: places for kind, places in kinds.items() if _is_tree(places)}
        places = {place for found in trees.values() for place in found}
        if trees and _is_tree(places):
            names = {name for found in trees.values() for name, _ in found.values()}
            return names, f"{'/'.join(trees)}: {_written(trees, places, shown)}"
    return None


def _written(trees: Kinds, places: set[str], shown: Callable[[Any], str]) -> str:
    parents = {place: _parent(place, places) for place in places}

    def node(place: str) -> str:
        values = "/".join(shown(found[place][1]) for found in trees.values() if place in found)
        inner = [node(other) for other in sorted(places) if parents[other] == place]
        return values + (f"({', '.join(inner)})" if inner else "")

    return node(min(places, key=len))


def _is_tree(places: Collection[str]) -> bool:
    root = min(places, key=len)
    return len(places) >= _FEWEST and all(place.startswith(root) for place in places)


def _parent(place: str, places: set[str]) -> str | None:
    shorter = [other for other in places if other != place and place.startswith(other)]
    return max(shorter, key=len, default=None)
