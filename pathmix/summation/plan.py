"""What is summed in which order: variables, factors between them, and groups of components that are alike.

A variable is an element of a discrete site, a factor an element of a term of the density. Factors link
variables; what is linked is a component, and components that look alike (the elements of a plate) are worked
on together, as arrays.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pathmix.program.slp import TermOutput
from pathmix.summation.sets import Sets

_MOST_CELLS = 2**21  # of all tables of one term or one step, over all components of a group
_MOST_VARIABLES = 20_000
_SMALL = 2**12  # cells, up to which a table may be larger than it must, for fewer rounds


class SummedSite(NamedTuple):
    """A discrete site: its values are `low`, `low` + 1, ..., so many."""

    input: int  # of the graph
    name: str
    shape: tuple[int, ...]
    low: int
    values: int

    @property
    def size(self) -> int:
        return math.prod(self.shape)


class Axis(NamedTuple):
    """Of a term's table: the value of those elements of a site that have this colour."""

    site: int  # among the summed ones
    colour: int


@dataclass(frozen=True, eq=False)
class Term:
    """A term of the density: an output of the graph whose elements depend on variables."""

    slot: int
    is_prior: bool
    is_own: bool  # that of a summed site, whose sum over its values is one
    axes: tuple[Axis, ...]
    colours: dict[int, np.ndarray]  # for each site that it depends on, of the elements; others have any value
    constant: np.ndarray  # elements that depend on no variable


class Slot(NamedTuple):
    """A factor of a component, the same for all components of a group."""

    term: int
    variables: tuple[int, ...]  # of the component, in the order of:
    axes: tuple[int, ...]  # of the term


@dataclass(frozen=True, eq=False)
class Group:
    """Components that look alike."""

    counts: tuple[int, ...]  # of values, for each variable
    members: np.ndarray  # components along the first axis: the number of each variable
    slots: tuple[Slot, ...]
    elements: np.ndarray  # components along the first axis: of the term, for each slot
    rounds: tuple[tuple[int, ...], ...]  # variables that are summed out together: no factor has two of them


@dataclass(frozen=True, eq=False)
class Plan:
    sites: tuple[SummedSite, ...]
    terms: tuple[Term, ...]
    groups: tuple[Group, ...]
    widest: int  # values of all variables that meet in one table


class TooWideError(Exception):
    """Tables would be too large; these sites meet in one."""

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__()
        self.names = tuple(dict.fromkeys(names))


def variable_sets(sites: Sequence[SummedSite], sets: Sets) -> dict[int, np.ndarray]:
    """For each input, the sets of one variable that its elements are."""
    found, first = {}, 0
    for site in sites:
        numbers = [sets.number([first + i]) for i in range(site.size)]
        found[site.input] = np.array(numbers, int).reshape(site.shape)
        first += site.size
    return found


def make_plan(
    sites: Sequence[SummedSite], terms: Sequence[tuple[TermOutput, np.ndarray]], sets: Sets
) -> Plan:
    """The plan, given the terms that depend on variables, and on which ones their elements do."""
    owner = np.repeat(np.arange(len(sites)), [site.size for site in sites])
    if len(owner) > _MOST_VARIABLES:
        raise TooWideError(site.name for site in sites)
    first = np.cumsum([0, *(site.size for site in sites)])
    made = [_term(output, depends, sites, owner, first, sets) for output, depends in terms]
    factors = [
        (number, element, tuple(sorted(sets.members(on))))
        for number, (_, depends) in enumerate(terms)
        for element, on in enumerate(depends.ravel().tolist())
        if on
    ]
    groups, widest = _groups(sites, made, factors, owner, first)
    return Plan(tuple(sites), tuple(made), tuple(groups), widest)


def _term(
    output: TermOutput,
    depends: np.ndarray,
    sites: Sequence[SummedSite],
    owner: np.ndarray,
    first: np.ndarray,
    sets: Sets,
) -> Term:
    """Colours tell apart the variables of a site that meet in an element; the others may share one."""
    apart: dict[int, set[int]] = {}
    for number in np.unique(depends).tolist():
        members = sets.members(number)
        for variable in members:
            apart.setdefault(variable, set()).update(
                other for other in members if other != variable and owner[other] == owner[variable]
            )
    chosen: dict[int, int] = {}
    for variable in sorted(apart):
        taken = {chosen[other] for other in apart[variable] if other in chosen}
        chosen[variable] = next(colour for colour in range(len(taken) + 1) if colour not in taken)
    colours = {int(site): np.full(sites[site].size, -1) for site in {owner[v] for v in chosen}}
    for variable, colour in chosen.items():
        colours[int(owner[variable])][variable - first[owner[variable]]] = colour
    axes = tuple(
        Axis(site, colour) for site in sorted(colours) for colour in range(int(colours[site].max()) + 1)
    )
    cells = math.prod(sites[axis.site].values for axis in axes) * depends.size
    if cells > _MOST_CELLS:
        raise TooWideError(sites[axis.site].name for axis in axes)
    return Term(output.slot, output.is_prior, output.is_own, axes, colours, depends.ravel() == 0)


Factor = tuple[int, int, tuple[int, ...]]  # term, element, variables


def _groups(
    sites: Sequence[SummedSite],
    terms: Sequence[Term],
    factors: Sequence[Factor],
    owner: np.ndarray,
    first: np.ndarray,
) -> tuple[list[Group], int]:
    component = _components(len(owner), [variables for *_, variables in factors])
    variables: dict[int, list[int]] = {}
    own: dict[int, list[Factor]] = {}
    for variable, root in enumerate(component):
        variables.setdefault(root, []).append(variable)
    for factor in factors:
        own.setdefault(component[factor[2][0]], []).append(factor)
    alike: dict[tuple[tuple[int, ...], tuple[Slot, ...]], list[tuple[list[int], list[int]]]] = {}
    for root, members in variables.items():
        place = {variable: number for number, variable in enumerate(members)}
        described = []
        for number, element, together in own.get(root, ()):
            axes = tuple(
                terms[number].axes.index(
                    Axis(int(owner[v]), int(terms[number].colours[int(owner[v])][v - first[owner[v]]]))
                )
                for v in together
            )
            described.append((Slot(number, tuple(place[v] for v in together), axes), element))
        described.sort()
        counts = tuple(sites[owner[v]].values for v in members)
        key = (counts, tuple(slot for slot, _ in described))
        alike.setdefault(key, []).append((members, [element for _, element in described]))
    groups, widest = [], 1
    for (counts, slots), found in alike.items():
        names = [sites[owner[v]].name for v in found[0][0]]
        rounds, cells = _rounds(counts, [slot.variables for slot in slots], names, len(found))
        widest = max(widest, cells)
        members, elements = (np.array(part, int) for part in zip(*found, strict=True))
        groups.append(Group(counts, members, slots, elements.reshape(len(found), len(slots)), rounds))
    return groups, widest


def _components(count: int, together: Iterable[tuple[int, ...]]) -> list[int]:
    """For each variable, one that stands for all that it is linked to."""
    above = list(range(count))

    def root(variable: int) -> int:
        while above[variable] != variable:
            above[variable] = above[above[variable]]
            variable = above[variable]
        return variable

    for variables in together:
        for variable in variables[1:]:
            above[root(variable)] = root(variables[0])
    return [root(variable) for variable in range(count)]


Rounds = tuple[tuple[int, ...], ...]


def _rounds(
    counts: Sequence[int], scopes: Sequence[tuple[int, ...]], names: Sequence[str], members: int
) -> tuple[Rounds, int]:
    """Few rounds where that leads to no larger tables than it must; and the size of the largest table."""
    small = max(_SMALL // members, 1)
    careful, least = _order(counts, scopes, names, members, 1)
    quick, widest = _order(counts, scopes, names, members, small) if least <= small else (careful, least)
    return (quick, least) if widest <= small else (careful, least)


def _order(
    counts: Sequence[int], scopes: Sequence[tuple[int, ...]], names: Sequence[str], members: int, small: int
) -> tuple[Rounds, int]:
    """In each round the variables with the smallest tables, or with small ones, that are no neighbours."""
    near: list[set[int]] = [set() for _ in counts]
    for scope in scopes:
        for variable in scope:
            near[variable].update(scope)
    for variable, others in enumerate(near):
        others.discard(variable)

    def cells(variable: int) -> int:
        return counts[variable] * math.prod(counts[other] for other in near[variable])

    size = {variable: cells(variable) for variable in range(len(counts))}
    rounds, widest = [], 1
    while size:
        limit, chosen, beside = max(small, min(size.values())), list[int](), set[int]()
        for variable in sorted(size, key=lambda one: (size[one], one)):
            if size[variable] > limit:
                break
            if variable not in beside:
                chosen.append(variable)
                beside |= near[variable]
        widest = max(widest, *(size.pop(variable) for variable in chosen))
        if widest * members > _MOST_CELLS:
            raise TooWideError(names[v] for v in (chosen[-1], *near[chosen[-1]]))
        for variable in chosen:
            for other in near[variable]:
                near[other] |= near[variable]
                near[other] -= {other, variable}
        size.update((other, cells(other)) for other in beside)
        rounds.append(tuple(chosen))
    return tuple(rounds), widest
