"""The tree of decisions as results have it: where runs part, how probably, and what nobody saw."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pathmix.discovery.tree import Node, Tree
from pathmix.program.path import Path, PinnedValue
from pathmix.program.slp import StraightLineProgram
from pathmix.program.values import SiteRows
from pathmix.target.labels import assignment, shown

_NAMED = 3  # values of a discrete site that nobody saw
_OTHERS = "others"


@dataclass(frozen=True)
class Way:
    """One way on from a fork.

    Attributes:
        text: how it reads: `k=2`, `-4 < u <= -3`.
        about: the single number that it bounds, in which case the text has all that was said of it before.
        outcome: of the decision, or the value of the discrete site.
        probability: prior, of the runs that come to the fork, among those along paths that were kept.
        error: of an estimate from prior runs (about a third where there were none); zero where the
            probability is exact, up to rounding.
        leads_to: the number of the next fork; None at the end of a path.
    """

    text: str
    about: str
    outcome: PinnedValue
    probability: float
    error: float
    leads_to: int | None


@dataclass(frozen=True)
class Fork:
    """A discrete site, or a decision in which continuous values have a say, after all that came before.

    Attributes:
        place: the name of the site, or the line of the decision.
        decision: the number of the decision in the path; None for a site.
        mass: prior probability of coming here, estimated if that of any way there is.
        ways: those that kept paths go.
        unseen: the part of the runs that come here which go another way; below 1e-16 it may be zero.
        unseen_is_exact: it is known, and not what one more run might have shown.
        unseen_ways: some of these, by name; none if there are no other ways.
        unseen_about: the single number that these bound, if they do.
    """

    place: str
    decision: int | None
    mass: float
    ways: tuple[Way, ...]
    unseen: float
    unseen_is_exact: bool
    unseen_ways: tuple[str, ...]
    unseen_about: str


class Unexplored(NamedTuple):
    """A place where runs may go on as no path does that was kept.

    Among these are paths beyond `max_paths`, and runs that fail or never end.
    """

    after: tuple[str, ...]  # the ways that lead there
    ways: tuple[str, ...]  # some of those that are left
    mass: float  # prior probability; an estimate of what one more run might show, unless it is exact
    is_exact: bool


@dataclass(frozen=True)
class DecisionTree:
    """Where the paths of a program part: `forks`, the first one first, with ways to later ones."""

    forks: tuple[Fork, ...] = ()

    def ways(self, path: Path) -> list[tuple[Fork, Way]]:
        """The forks that a path comes to, and where it goes from each; as far as it is known here."""
        pinned, found = dict(path.pinned), list[tuple[Fork, Way]]()
        number = 0 if self.forks else None
        while number is not None:
            fork = self.forks[number]
            outcome = _outcome(path, pinned, fork)
            way = next((way for way in fork.ways if way.outcome == outcome), None)
            if way is None:
                break
            found.append((fork, way))
            number = way.leads_to
        return found

    def unexplored(self) -> list[Unexplored]:
        """Where no kept path goes on, the most probable first."""
        before: list[tuple[tuple[Fork, Way], ...]] = [()] * len(self.forks)
        for number, fork in enumerate(self.forks):
            for way in fork.ways:
                if way.leads_to is not None:
                    before[way.leads_to] = (*before[number], (fork, way))
        left = [
            Unexplored(
                read(before[number], then=fork.unseen_about),
                fork.unseen_ways,
                fork.mass * fork.unseen,
                fork.unseen_is_exact and all(way.error == 0 for _, way in before[number]),
            )
            for number, fork in enumerate(self.forks)
            if fork.unseen_ways
        ]
        return sorted(left, key=lambda one: -one.mass)


def read(ways: Sequence[tuple[Fork, Way]], then: str = "") -> tuple[str, ...]:
    """How ways that follow each other read: bounds of one number as one, which have all that came before.

    What comes `then` bounds a number, too.
    """
    following = [*(way.about for _, way in ways), then][1:]
    return tuple(
        way.text
        for (_, way), about in zip(ways, following, strict=True)
        if not way.about or way.about != about
    )


def tree_of(paths: Iterable[tuple[StraightLineProgram, SiteRows, int]]) -> DecisionTree:
    """Of paths with draws, and how many prior runs took each."""
    tree, visits = Tree(), dict[Path, int]()
    for slp, draws, runs in paths:
        tree.add(slp.path, slp, draws)
        visits[slp.path] = runs
    tree.weigh(visits)
    return as_found(tree)


def as_found(tree: Tree) -> DecisionTree:
    """The tree by what is known of it now."""
    numbers = {node: number for number, node in enumerate(tree.nodes)}
    return DecisionTree(tuple(_fork(node, numbers) for node in tree.nodes))


def _fork(node: Node, numbers: dict[Node, int]) -> Fork:
    ways = []
    for outcome, child in node.ways.items():
        step, chance = node.steps[outcome], node.chance(outcome)
        probability = chance.probability if chance.error == 0 or node.visits.total() else node.likely(outcome)
        leads_to = None if child is None else numbers[child]
        ways.append(Way(step.way, step.about, outcome, probability, chance.error, leads_to))
    return Fork(
        place=node.step.place,
        decision=None if node.step.is_site else node.step.number,
        mass=node.mass,
        ways=tuple(ways),
        unseen=node.unseen_share,
        unseen_is_exact=node.is_known,
        unseen_ways=() if node.is_complete else _unseen(node),
        unseen_about="" if node.is_complete else node.step.about_other,
    )


def _unseen(node: Node) -> tuple[str, ...]:
    """Values of a site near those that were seen, or the other side of a decision."""
    if not node.step.is_site:
        several = ", ".join(map(shown, node.ways))
        return (node.step.other if node.step.is_binary else f"{node.step.other} other than {several}",)
    values = node.unseen(_NAMED + 1)
    names = [assignment(node.step.place, value) for value in values[:_NAMED]]
    return (*names, _OTHERS) if len(values) != len(names) or not names else tuple(names)


def _outcome(path: Path, pinned: dict[str, PinnedValue], fork: Fork) -> PinnedValue | None:
    if fork.decision is None:
        return pinned.get(fork.place)
    return path.decisions[fork.decision].value if fork.decision < len(path.decisions) else None
