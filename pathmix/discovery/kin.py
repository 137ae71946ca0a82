"""Kin: sites of two paths that mean the same, although they may be called otherwise.

A subtree of a grammar means the same wherever it stands: what one path has found for its sites is where
another, which has it in another place, may start. Elsewhere, sites mean the same if they have the same name.
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

import numpy as np

from pathmix.discovery.grammar import Grammar, Setting, nodes, subtree
from pathmix.program.path import PinnedValue
from pathmix.program.slp import StraightLineProgram
from pathmix.program.values import SiteValues


@dataclass(frozen=True)
class Kin:
    """What is known of the relations between the paths of a program."""

    grammar: Grammar = field(default_factory=Grammar)
    _known: set[Hashable] = field(default_factory=set)

    def learn(self, slps: Iterable[StraightLineProgram]) -> None:
        """Take notice of the names that new paths have."""
        for slp in slps:
            if slp.path.pinned not in self._known:
                self._known.add(slp.path.pinned)
                self.grammar.learn(dict(slp.path.pinned))

    def roles(self, slp: StraightLineProgram) -> set[Hashable]:
        """What the free sites of a path are, wherever they stand."""
        setting = dict(slp.path.pinned)
        tops = self._tops(setting)
        found: set[Hashable] = set()
        for site in slp.free:
            above = _above(site.name, tops)
            top = None if above is None else (tops[above], setting[above + tops[above]])
            found.add((top, site.name[len(above or "") :], site.shape))
        return found

    def taken_over(
        self,
        values: SiteValues,
        lender: StraightLineProgram,
        borrower: StraightLineProgram,
        generator: np.random.Generator | None = None,
    ) -> SiteValues:
        """Values of the lender's sites, for those of the borrower that mean the same.

        Where several do, a generator chooses; without one, it is the one in the same place, or the first.
        """
        setting = dict(borrower.path.pinned)
        tops, moved = self._tops(setting), self._counterparts(setting, dict(lender.path.pinned), generator)
        names: dict[str, str] = {}
        for site in borrower.free:
            above = _above(site.name, tops)
            if above is not None and above in moved:
                names[site.name] = moved[above] + site.name[len(above) :]
        used = set(names.values())
        for site in borrower.free:
            if site.name not in used:
                names.setdefault(site.name, site.name)
        shapes = {site.name: site.shape for site in borrower.free}
        return {
            own: values[other]
            for own, other in names.items()
            if other in values and np.shape(values[other]) == shapes[own]
        }

    def _tops(self, setting: Setting) -> dict[str, str]:
        """The nodes of a path, those with the shortest names first."""
        return dict(sorted(nodes(setting, self.grammar), key=lambda node: len(node[0])))

    def _counterparts(
        self, own: Setting, other: Setting, generator: np.random.Generator | None
    ) -> dict[str, str]:
        """For nodes of one path, nodes of another: whole subtrees, the largest first, then single nodes."""
        found: dict[str, str] = {}
        tops, others = self._tops(own), self._tops(other)

        def counterpart(outer: str, meaning: Hashable, there: dict[str, Hashable]) -> str | None:
            left = [name for name, meant in there.items() if meant == meaning and name not in found.values()]
            if left and generator is not None:
                return left[generator.integers(len(left))]
            return outer if outer in left else next(iter(left), None)

        whole: dict[str, Hashable] = {outer: _whole(other, outer) for outer in others}
        for outer in sorted(tops, key=lambda outer: -len(_whole(own, outer))):
            there = counterpart(outer, _whole(own, outer), whole) if outer not in found else None
            if there is not None:
                found |= {top: there + top[len(outer) :] for top in tops if top.startswith(outer)}
        alone: dict[str, Hashable] = {outer: (rest, other[outer + rest]) for outer, rest in others.items()}
        for outer, rest in tops.items():
            there = counterpart(outer, (rest, own[outer + rest]), alone) if outer not in found else None
            if there is not None:
                found[outer] = there
        return found


def _whole(setting: Setting, outer: str) -> frozenset[tuple[str, PinnedValue]]:
    return frozenset(subtree(setting, outer).items())


def _above(name: str, tops: Iterable[str]) -> str | None:
    """The node that a site belongs to, of those with the shortest names first."""
    return next((top for top in reversed(list(tops)) if name.startswith(top)), None)
