"""The steps of a path through the tree of decisions, with what is known of their prior probability."""

import math
from typing import NamedTuple

import numpy as np

from pathmix.program.path import PinnedValue
from pathmix.program.slp import Settled, StraightLineProgram
from pathmix.program.values import SiteRows
from pathmix.regions.expressions import expressions
from pathmix.regions.intervals import EVERYTHING
from pathmix.regions.mass import probability
from pathmix.regions.region import merge, read_conditions
from pathmix.regions.witnesses import Box
from pathmix.target.labels import assignment, decision_text, element_name


class Step(NamedTuple):
    """The value of a discrete site, or the outcome of a decision in which continuous values have a say."""

    place: str  # the name of the site, or where the decision is
    outcome: PinnedValue
    is_site: bool
    is_binary: bool  # a decision that is a yes or no
    number: int  # of the site, or of the decision
    probability: float | None  # given the steps before, where it is exactly known
    is_implied: bool = False  # a decision that cannot come out otherwise, after the steps before
    way: str = ""  # how the outcome reads: `k=2`, `-4 < u <= -3`
    about: str = ""  # the single number that this bounds, with all that was said of it before
    other: str = ""  # how the other outcome of a yes or no reads
    about_other: str = ""


def steps(slp: StraightLineProgram, draws: SiteRows) -> list[Step]:
    """In the order of the run. Decisions that earlier steps settle are none."""
    settled = settled_of(slp)
    terms = dict(zip((name for name, _ in slp.drawn), settled.log_probabilities, strict=True))
    pinned = dict(slp.path.pinned)
    boxes = _Boxes(slp, draws, any_open=not all(settled.decisions))
    found, decisions = list[Step](), list(enumerate(zip(slp.decided_after, settled.decisions, strict=True)))
    for position in range(len(slp.sites) + 1):
        while decisions and decisions[0][1][0] <= position:
            number, (_, is_settled) = decisions.pop(0)
            if is_settled:
                continue
            decision, place = slp.path.decisions[number], str(slp.sources[number])
            chance, is_implied = boxes.narrow(number)
            is_binary = decision.kind == "bool"
            reading = boxes.reading(number)
            if reading is None:  # whatever other decisions say, this one cannot come out otherwise
                chance, is_implied, reading = 1.0, True, _Reading(decision_text(slp, number))
            step = Step(place, decision.value, False, is_binary, number, chance, is_implied)
            found.append(step._replace(**reading._asdict()))
        if position < len(slp.sites) and (name := slp.sites[position].name) in pinned:
            term = terms.get(name)
            chance = None if term is None else math.exp(term)
            way = assignment(name, pinned[name])
            found.append(Step(name, pinned[name], True, False, position, chance, way=way))
    return found


class _Reading(NamedTuple):
    """How the outcome of a decision reads, and how the other one would."""

    way: str
    about: str = ""
    other: str = ""
    about_other: str = ""


class _Boxes:
    """The box that decisions have made so far, while that is all they say."""

    def __init__(self, slp: StraightLineProgram, draws: SiteRows, *, any_open: bool) -> None:
        self.slp = slp
        self.conditions = read_conditions(slp, draws) if any_open else ()
        self.box: Box | None = {}
        self.mass: float = 1.0
        self.bounds: Box = {}  # of single numbers, whatever other decisions say

    def reading(self, number: int) -> _Reading | None:
        """The bounds of a number after a decision that does nothing but bound it, else what Python saw.

        None if bounds imply the outcome.
        """
        before, own = self.bounds, self.conditions[number].box
        plain = _Reading(decision_text(self.slp, number), other=decision_text(self.slp, number, turned=True))
        merged = None if own is None else merge(self.slp, before, own)
        if own is None or merged is None:
            return plain
        if merged == before:
            return None
        self.bounds = merged
        if len(own) != 1:
            return plain
        ((element, interval),) = own.items()
        about = element_name(self.slp.sites[element[0]], element[1])
        reading = _Reading(merged[element].describe(about), about, plain.other)
        opposite = interval.opposite
        if opposite is None:
            return reading
        # It may reach to where the number cannot be.
        rest = merge(self.slp, {}, {element: before.get(element, EVERYTHING) & opposite})
        if rest is None:
            return None
        return reading._replace(other=rest.get(element, EVERYTHING).describe(about), about_other=about)

    def narrow(self, number: int) -> tuple[float | None, bool]:
        """The probability of one more decision, given those before, and whether these imply it."""
        own, before = self.conditions[number].box, self.box
        self.box = None if before is None or own is None else merge(self.slp, before, own)
        if self.box is not None and self.box == before:
            return 1.0, True
        mass = None if self.box is None else probability(self.slp, self.box)
        if mass is None or self.mass == 0:
            self.box = None  # what comes after is not independent of it
            return None, False
        chance, self.mass = mass / self.mass, mass
        return chance, False


def settled_of(slp: StraightLineProgram) -> Settled:
    """What pinned sites settle."""
    return slp.settled or settled_by_graph(slp)


def settled_by_graph(slp: StraightLineProgram) -> Settled:
    """What pinned sites settle, as the graph says."""
    first = slp.FIRST_CONDITION
    conditions = range(first, first + len(slp.path.decisions))
    graph = slp.graph.outputs([*conditions, *(slot for _, slot in slp.drawn)])
    outputs = expressions(graph, [site.pinned for site in slp.sites])
    terms = outputs[len(conditions) :]
    return Settled(
        tuple(not condition.free for condition in outputs[: len(conditions)]),
        tuple(None if term.free else float(np.asarray(term.value())) for term in terms),
    )
