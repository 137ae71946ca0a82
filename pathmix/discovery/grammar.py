"""Grammars as names tell them: which sites lie below which others, and the subtrees of a path.

Programs that recurse write their trees into names: `k.l.kind` below `k.kind`, or a running number.
"""

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import NamedTuple

from pathmix.program.path import PinnedValue

Setting = Mapping[str, PinnedValue]  # of the discrete sites of a path

_TOKENS = re.compile(r"[^\W_]+|[\W_]+")
_ENDS_IN_NUMBER = re.compile(r"^(.*?)(\d+)$")
_LARGE_DIGITS, _MANY_DIGITS = frozenset("3456789"), 3


class Nest(NamedTuple):
    """What names have below others: `inner` goes between the name of a subtree and what follows it."""

    inner: str
    rest: str


class Grammar:
    """What the names of the paths seen so far have in common."""

    def __init__(self) -> None:
        self.nests: dict[Nest, dict[PinnedValue, None]] = {}
        self._nests: dict[Nest, dict[PinnedValue, None]] = {}
        self._numbers: dict[str, set[str]] = {}  # by what stands before them

    def learn(self, pinned: Setting) -> None:
        """Which names lie below which others."""
        for name in pinned:
            if found := _ENDS_IN_NUMBER.match(name):
                self._numbers.setdefault(found[1], set()).add(found[2])
        for name in pinned:
            for outer, inner, rest in _splits(name):
                if outer + rest in pinned and not self._counts(outer + rest):
                    above = self._nests.setdefault(Nest(inner, rest), {})
                    above[pinned[outer + rest]] = None
        # `k.l.r.kind` lies below `k.l.kind`, and not below `k.r.kind`.
        rests = dict.fromkeys(nest.rest for nest in self._nests)
        own = [r for r in rests if not any(r != other and other and r.endswith(other) for other in rests)]
        self.nests = {nest: values for nest, values in self._nests.items() if nest.rest in own}

    def _counts(self, name: str) -> bool:
        """Whether it is one of `x_0` to `x_12`, where `x_12` does not lie below `x_1`: trees have few digits,
        and zeros before others."""
        found = _ENDS_IN_NUMBER.match(name)
        numbers = self._numbers[found[1]] if found else set()
        padded = any(number.startswith("0") and number != "0" for number in numbers)
        return not padded and len(numbers & _LARGE_DIGITS) >= _MANY_DIGITS

    def below(self, rest: str, value: PinnedValue) -> list[str]:
        """What may lie below a node with some value."""
        return [nest.inner for nest, above in self.nests.items() if nest.rest == rest and value in above]

    def values(self, rest: str) -> list[PinnedValue]:
        """Of nodes with something below."""
        return list(
            dict.fromkeys(v for nest, above in self.nests.items() if nest.rest == rest for v in above)
        )


def nodes(pinned: Setting, grammar: Grammar) -> Iterator[tuple[str, str]]:
    """The subtrees of a path: what all their names begin with, and how the name of the top one ends."""
    for name in pinned:
        for rest in dict.fromkeys(nest.rest for nest in grammar.nests):
            if name.endswith(rest):
                yield name[: len(name) - len(rest)], rest


def subtree(pinned: Setting, outer: str) -> dict[str, PinnedValue]:
    """What lies below a node, and itself, by what names end with."""
    return {name[len(outer) :]: value for name, value in pinned.items() if name.startswith(outer)}


def unordered(setting: Setting, grammar: Grammar) -> Hashable:
    """Equal for paths that differ in the order of subtrees only."""
    found: dict[str, Hashable] = {}
    tops = sorted(nodes(setting, grammar), key=lambda node: -len(node[0]))
    for outer, rest in tops:
        value = setting[outer + rest]
        below = [
            found[outer + inner + rest]
            for inner in grammar.below(rest, value)
            if outer + inner + rest in found
        ]
        found[outer + rest] = (rest, value, tuple(sorted(below, key=repr)))
    inner = {
        outer + step + rest for outer, rest in tops for step in grammar.below(rest, setting[outer + rest])
    }
    whole = {name: found.get(name, value) for name, value in setting.items() if name not in inner}
    return frozenset(whole.items())


def _splits(name: str) -> Iterable[tuple[str, str, str]]:
    """A name without one of its steps: `k.l.kind` is `k`, `.l`, `.kind`; `op01` is `op0`, `1` and nothing."""
    tokens = _TOKENS.findall(name)
    for start in range(1, len(tokens) - 1):
        yield "".join(tokens[:start]), "".join(tokens[start : start + 2]), "".join(tokens[start + 2 :])
    for length in (1, 2):
        if len(name) > length:
            yield name[:-length], name[-length:], ""
