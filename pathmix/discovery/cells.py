"""Cells: what is known of the prior probability of paths, from the straight-line programs alone.

Until a continuous value decides something, or sets the probability of a discrete site, all that happens in
a run is settled by discrete sites of known probability. The runs that agree in these sites are a cell. Cells
do not overlap, and the probability of one is a product. A path on which no continuous value decides anything
is a cell by itself.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pathmix.program.path import PinnedValue
from pathmix.program.slp import Settled, StraightLineProgram
from pathmix.regions.expressions import expressions


@dataclass(frozen=True)
class Cell:
    """Runs that agree in the first discrete sites, up to where a continuous value has a say."""

    pinned: tuple[tuple[str, PinnedValue], ...]
    probability: float
    is_path: bool  # nothing is left open


EVERYTHING = Cell((), 1.0, is_path=False)


class Branch(NamedTuple):
    """The way that a run took at a yes or no."""

    taken: bool
    settled: bool  # by discrete sites alone, whose values the cell has

    def other(self) -> "Branch":
        return self._replace(taken=not self.taken)


def cell_of(slp: StraightLineProgram) -> Cell:
    """The cell that a path lies in."""
    settled = _settled(slp)
    known = dict(known_draws(slp))
    is_path = all(settled.decisions) and None not in settled.log_probabilities
    pinned = tuple((name, value) for name, value in slp.path.pinned if name in known)
    return Cell(pinned, float(np.exp(sum(known.values()))), is_path=is_path)


def known_draws(slp: StraightLineProgram) -> list[tuple[str, float]]:
    """Discrete sites in order, up to where a continuous value has a say, with their log-probabilities."""
    settled = _settled(slp)
    terms = dict(zip((name for name, _ in slp.drawn), settled.log_probabilities, strict=True))
    end = len(slp.sites)  # of the sites that no continuous value has had a say in
    for is_settled, sites in zip(settled.decisions, slp.decided_after, strict=True):
        end = end if is_settled else min(end, sites)
    for position, site in enumerate(slp.sites):
        end = min(end, position) if terms.get(site.name, 0.0) is None else end
    known = [(site.name, terms.get(site.name)) for site in slp.sites[:end]]
    return [(name, term) for name, term in known if term is not None]


def branches_of(slp: StraightLineProgram, cell: Cell) -> tuple[Branch, ...] | None:
    """The ways that a path took in its cell; None where something else than a yes or no was decided."""
    if slp.path.pinned != cell.pinned or any(decision.kind != "bool" for decision in slp.path.decisions):
        return None
    settled = _settled(slp).decisions
    return tuple(
        Branch(bool(decision.value), is_settled)
        for decision, is_settled in zip(slp.path.decisions, settled, strict=True)
    )


def _settled(slp: StraightLineProgram) -> Settled:
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
