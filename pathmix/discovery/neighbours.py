"""Neighbours of a path: other values of its discrete sites, with the rest of the run kept where it can be.

A proposal names values of discrete sites; whatever else the run comes to draws from its prior. Grammars write
their trees into names, so a subtree is moved by renaming it.
"""

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pathmix.discovery.grammar import Grammar, nodes, subtree
from pathmix.discovery.tree import nested, values_near
from pathmix.program.path import PinnedValue
from pathmix.program.slp import Site, StraightLineProgram

Proposal = dict[str, PinnedValue]
_MOST_VALUES = 12  # of a site, those nearest to its own
_MOST_EXCHANGED = 64  # elements of a vector, up to which any two are exchanged
_MOST_MIRRORED = 32
_NUMBERED = re.compile(r"^(.*?)(\d+)(\D*)$")


def neighbours(
    slp: StraightLineProgram,
    others: Sequence[StraightLineProgram],
    grammar: Grammar,
    generator: np.random.Generator,
) -> Iterator[Proposal]:
    """Of a path, in an order of chance, all kinds in turn; others lend it subtrees. Some are given twice."""
    pinned = dict(slp.path.pinned)
    sites = [site for site in slp.sites if site.pinned is not None]
    lenders = [pinned, *(dict(other.path.pinned) for other in others)]
    nearest = list(_one_changed(pinned, sites))
    kinds = [
        nearest[::2],
        list(_nested(pinned, grammar)),
        nearest[1::2],
        list(_regrown(pinned, grammar)),
        list(_exchanged(pinned)),
        list(_grown(pinned, grammar)),
        list(_joined(pinned, lenders, grammar)),
        list(_grafted(pinned, lenders, grammar)),
        list(_shifted(pinned, {site.name: site for site in sites})),
        list(_begun_again(pinned, sites)),
    ]
    for kind in kinds:
        generator.shuffle(kind)
    for turn in itertools.zip_longest(*kinds):
        yield from (proposal for proposal in turn if proposal)


def nearest(slp: StraightLineProgram) -> Iterator[Proposal]:
    """Another value of one site, or the values of two exchanged, and all others kept."""
    pinned = dict(slp.path.pinned)
    yield from _one_changed(pinned, [site for site in slp.sites if site.pinned is not None])
    yield from _exchanged(pinned)


def same_tree(slp: StraightLineProgram, grammar: Grammar) -> Iterator[Proposal]:
    """Another value of one site, which has the same below it, and all others kept."""
    pinned = dict(slp.path.pinned)
    rests = dict(nodes(pinned, grammar))
    tops = {outer + rest: rest for outer, rest in rests.items()}
    for site in slp.sites:
        for value in _changed(site, pinned[site.name]) if site.pinned is not None else ():
            rest = tops.get(site.name)
            below = [] if rest is None else [grammar.below(rest, one) for one in (pinned[site.name], value)]
            if not below or below[0] == below[1]:
                yield pinned | {site.name: value}


def mirrored(slp: StraightLineProgram, grammar: Grammar) -> list[Proposal]:
    """With subtrees of some nodes exchanged: where their order does not matter, all weigh the same."""
    own = dict(slp.path.pinned)
    found = {tuple(sorted(own.items())): own}
    waiting = [own]
    while waiting and len(found) < _MOST_MIRRORED:
        for proposal in _turned(waiting.pop(0), grammar):
            key = tuple(sorted(proposal.items()))
            if key not in found:
                found[key] = proposal
                waiting.append(proposal)
    return list(found.values())[1:]


def is_supported(slp: StraightLineProgram) -> bool:
    """Whether every pinned site has a value that it can draw: those that were put in may not be."""
    if slp.settled is not None and any(term == -np.inf for term in slp.settled.log_probabilities):
        return False
    for site in slp.sites:
        bounds = site.bounds_here or site.bounds
        if site.pinned is not None and bounds is not None:
            low, high = bounds
            if not np.all((np.asarray(low) <= site.pinned) & (site.pinned <= np.asarray(high))):
                return False
    return True


def _one_changed(pinned: Proposal, sites: Sequence[Site]) -> Iterator[Proposal]:
    """Another value of one site, and all others kept."""
    for site in sites:
        for value in _changed(site, pinned[site.name]):
            yield pinned | {site.name: value}


def _begun_again(pinned: Proposal, sites: Sequence[Site]) -> Iterator[Proposal]:
    """Another value of one site, and new ones after it."""
    for number, site in enumerate(sites[:-1]):
        before = {other.name: pinned[other.name] for other in sites[:number]}
        for value in _changed(site, pinned[site.name]):
            yield before | {site.name: value}


def _changed(site: Site, value: PinnedValue) -> Iterator[PinnedValue]:
    """Other values of a site; of a vector, those with one element changed, or two exchanged."""
    bounds = site.bounds_here or site.bounds
    if bounds is None:
        return
    if site.shape == ():
        yield from itertools.islice(values_near(site, bounds, value), _MOST_VALUES)
        return
    own = np.asarray(value)
    low, high = (np.broadcast_to(np.asarray(bound, float), site.shape) for bound in bounds)
    for place in np.ndindex(site.shape):
        for step in (1, -1):
            if low[place] <= own[place] + step <= high[place]:
                changed = own.copy()
                changed[place] += step
                yield nested(changed)
    pairs = itertools.combinations(np.ndindex(site.shape), 2) if own.size <= _MOST_EXCHANGED else ()
    for one, other in pairs:
        if own[one] != own[other]:
            changed = own.copy()
            changed[one], changed[other] = own[other], own[one]
            yield nested(changed)


def _without(pinned: Proposal, outer: str) -> Proposal:
    return {name: value for name, value in pinned.items() if not name.startswith(outer)}


def _nested(pinned: Proposal, grammar: Grammar) -> Iterator[Proposal]:
    """A subtree put below a new node that has room for no other, or put in the place of the node above it."""
    for outer, rest in nodes(pinned, grammar):
        others, below = _without(pinned, outer), subtree(pinned, outer)
        for value in grammar.values(rest):
            inners = grammar.below(rest, value)
            if len(inners) == 1:
                yield others | _placed(below, outer + inners[0]) | {outer + rest: value}
        for nest in grammar.nests:
            inner = subtree(below, nest.inner)
            if nest.rest == rest and rest in inner:
                yield others | _placed(inner, outer)


def _turned(pinned: Proposal, grammar: Grammar) -> Iterator[Proposal]:
    """Two subtrees of one node in each other's place."""
    for outer, rest in nodes(pinned, grammar):
        for one, other in itertools.combinations(grammar.below(rest, pinned[outer + rest]), 2):
            first, second = (subtree(pinned, outer + inner) for inner in (one, other))
            if first and second and first != second:
                others = _without(_without(pinned, outer + one), outer + other)
                yield others | _placed(second, outer + one) | _placed(first, outer + other)


def _regrown(pinned: Proposal, grammar: Grammar) -> Iterator[Proposal]:
    """Without a subtree, which grows anew."""
    for outer, _ in nodes(pinned, grammar):
        if others := _without(pinned, outer):
            yield others


def _grafted(pinned: Proposal, lenders: Sequence[Proposal], grammar: Grammar) -> Iterator[Proposal]:
    """With a subtree of another path, or of this one, in the place of one of its own."""
    for outer, rest in nodes(pinned, grammar):
        others = _without(pinned, outer)
        for lent in _subtrees(lenders, rest, grammar):
            yield others | _placed(lent, outer)


def _grown(pinned: Proposal, grammar: Grammar) -> Iterator[Proposal]:
    """A subtree and one of the smallest of the path, both put below a new node."""
    for outer, rest in nodes(pinned, grammar):
        subtrees = _subtrees([pinned], rest, grammar)
        leaves = [subtree for subtree in subtrees if len(subtree) == min(map(len, subtrees))]
        yield from _both_below(pinned, outer, rest, leaves, grammar)


def _joined(pinned: Proposal, lenders: Sequence[Proposal], grammar: Grammar) -> Iterator[Proposal]:
    """The whole tree and a subtree of another path, or of this one, both put below a new node."""
    for outer, rest in itertools.islice(nodes(pinned, grammar), 1):
        yield from _both_below(pinned, outer, rest, _subtrees(lenders, rest, grammar), grammar)


def _both_below(
    pinned: Proposal, outer: str, rest: str, lent: Sequence[Proposal], grammar: Grammar
) -> Iterator[Proposal]:
    others, own = _without(pinned, outer), subtree(pinned, outer)
    for value in grammar.values(rest):
        for first, second in itertools.permutations(grammar.below(rest, value), 2):
            kept = others | {outer + rest: value} | _placed(own, outer + first)
            yield from (kept | _placed(one, outer + second) for one in lent)


def _subtrees(lenders: Sequence[Proposal], rest: str, grammar: Grammar) -> list[Proposal]:
    """All different ones, by what their names end with."""
    found = {
        tuple(subtree(lender, outer).items()): None
        for lender in lenders
        for outer, ending in nodes(lender, grammar)
        if ending == rest
    }
    return [dict(subtree) for subtree in found]


def _placed(subtree: Proposal, outer: str) -> Proposal:
    return {outer + end: value for end, value in subtree.items()}


def _shifted(pinned: Proposal, sites: dict[str, Site]) -> Iterator[Proposal]:
    """Numbered sites with one or two taken out, or a new one put in, which the others make room for."""
    stems: dict[tuple[str, str], dict[int, str]] = {}
    for name in pinned:
        if found := _NUMBERED.match(name):
            stems.setdefault((found[1], found[3]), {})[int(found[2])] = name
    for (before, after), names in stems.items():
        if len(names) < 2:
            continue
        others = {name: value for name, value in pinned.items() if name not in names.values()}
        for place, name in names.items():
            for shift in (-1, -2, 1, 2):
                moved = {
                    f"{before}{number + (shift if number >= place else 0)}{after}": pinned[own]
                    for number, own in names.items()
                    if number < place or number + min(shift, 0) >= place
                }
                if shift < 0:
                    yield others | moved
                    continue
                bounds = sites[name].bounds_here or sites[name].bounds
                if bounds is not None and sites[name].shape == ():
                    near = values_near(sites[name], bounds, pinned[name])
                    for value in itertools.islice(near, _MOST_VALUES):
                        yield others | moved | {name: value}


def _exchanged(pinned: Proposal) -> Iterator[Proposal]:
    """Two sites that look alike with each other's values."""
    alike: dict[Any, list[str]] = {}
    for name, value in pinned.items():
        stem = re.sub(r"\d+", "#", name)
        alike.setdefault((stem, np.shape(value)), []).append(name)
    for names in alike.values():
        for one, other in itertools.combinations(names, 2):
            if pinned[one] != pinned[other]:
                yield pinned | {one: pinned[other], other: pinned[one]}
