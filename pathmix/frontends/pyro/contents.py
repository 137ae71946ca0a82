"""Contents: what the outputs of a path's flat graph mean, and what can be told from the graph alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from pathmix.errors import ProgramError
from pathmix.frontends.observations import flaw_of
from pathmix.frontends.priors import Named
from pathmix.frontends.pyro.flatten import FlatGraph
from pathmix.frontends.pyro.lowering.dtypes import as_numpy
from pathmix.frontends.pyro.supports import Support
from pathmix.frontends.pyro.tape import Look, Node
from pathmix.frontends.supports import SupportBounds
from pathmix.program.batch_run import BatchRun
from pathmix.program.graph import Graph
from pathmix.program.parameters import Parameter
from pathmix.program.path import Path
from pathmix.program.slp import BijectionTemplate, Flaw, Plate, Prior, StraightLineProgram, TermOutput
from pathmix.program.source import Source

FIRST = StraightLineProgram.FIRST_CONDITION


@dataclass(frozen=True, eq=False)
class Observation:
    """An observed site, and whether its support, or one end of it, covers each value of its batch."""

    name: str
    source: Source
    support: str
    inside: torch.Tensor
    value: torch.Tensor
    binds: bool  # latent sites on which it depends


@dataclass(frozen=True, eq=False)
class Contents:
    """What the flat graph gives: log-prior, log-likelihood, and in this order the following."""

    decided_after: tuple[int, ...]  # for each value that was looked at, random or not: sites before it
    observations: tuple[Observation, ...]  # `inside` and `value` of each
    supports: dict[str, Support]  # their parameters
    discrete: frozenset[str]  # sites among them
    deterministics: tuple[str, ...]
    drawn: tuple[str, ...]  # log-probabilities of discrete sites
    masks: tuple[str, ...]  # of free sites
    pointwise: tuple[str, ...]  # observed sites
    drawn_from: dict[str, Named]  # free sites whose elements are independent
    terms: dict[str, tuple[bool, bool]]  # where sites are summed out: is it a prior, is it plain
    subsampled: tuple[Plate, ...]  # their indices are inputs, after the sites
    open: dict[str, np.ndarray]  # parameters that are inputs, after the indices, if the path has them or not
    parameters: tuple[Parameter, ...]  # among them, that it has

    def decided(self, flat: FlatGraph) -> list[int]:
        """The values that were looked at and are random. Others are no decisions of the path."""
        looked_at = range(len(self.decided_after))
        return [i for i in looked_at if flat.outputs[FIRST + i] not in flat.constants]

    def binding(self, flat: FlatGraph) -> list[int]:
        """The observations that are conditions on the latent sites."""
        return [
            number
            for number, observation in enumerate(self.observations)
            if observation.binds and flat.outputs[self.cover(number)] not in flat.constants
        ]

    def cover(self, number: int) -> int:
        """The output that says whether an observation is covered; the next one is its value."""
        return FIRST + len(self.decided_after) + 2 * number

    def indicators(self, flat: FlatGraph) -> tuple[str, ...]:
        seen = [self.observations[number] for number in self.binding(flat)]
        return tuple(f"{observation.name!r} at {observation.source}" for observation in seen)

    def flaw(self, flat: FlatGraph) -> Flaw | None:
        """What is wrong with the data, where that does not depend on latent sites."""
        for number, seen in enumerate(self.observations):
            inside, value = flat.outputs[self.cover(number) : self.cover(number) + 2]
            if inside in flat.constants:
                known = as_numpy(flat.constants[value]) if value in flat.constants else None
                if flaw := flaw_of(
                    seen.name, seen.source, known, as_numpy(flat.constants[inside]), seen.support
                ):
                    return flaw
        return None


@dataclass(frozen=True, eq=False)
class Lowered:
    """The graph in JAX, and what its outputs are."""

    graph: Graph
    path: Path
    sources: tuple[Source, ...]
    indicators: tuple[str, ...]  # observed sites
    flaw: Flaw | None
    bijections: dict[str, BijectionTemplate]
    bounds: dict[str, SupportBounds]
    bounds_here: dict[str, tuple[Any, Any]]  # of discrete sites, where other pinned sites decide them
    deterministics: tuple[tuple[str, int], ...]
    drawn: tuple[tuple[str, int], ...]
    masks: tuple[tuple[str, int], ...]
    pointwise: tuple[tuple[str, int], ...]
    priors: dict[str, Prior]
    terms: tuple[TermOutput, ...]
    decided_after: tuple[int, ...]
    looked_at: frozenset[str]


def deciding(flat: FlatGraph, contents: Contents, batch_run: BatchRun) -> frozenset[str]:
    """The pinned sites that decide something: in the graph, they are numbers.

    What PyTorch looked at itself is no decision, so it must be discrete.
    """
    for names, look in looked_at_continuous(flat, contents, batch_run):
        sites = ", ".join(map(repr, names))
        if look.for_shape:
            raise ProgramError(
                f"The shape of what PyTorch gives at {look.source} depends on {sites}. Along one path every "
                "shape is fixed: keep all elements and use torch.where or a mask, or decide with an ordinary "
                "`if` or a loop which elements there are."
            )
        raise ProgramError(
            f"At {look.source} PyTorch needs a number, and gets a random value that depends on {sites}. Make "
            "the number in the program, where it can be seen: int(k), or compare the value."
        )
    return having_say(flat, contents, batch_run) & dict(batch_run.path.pinned).keys()


def having_say(flat: FlatGraph, contents: Contents, batch_run: BatchRun) -> frozenset[str]:
    """The sites behind anything that was looked at, by Python or by PyTorch."""
    nodes = [*_looked_at(flat), *(flat.outputs[FIRST + i] for i in contents.decided(flat))]
    return frozenset[str]().union(*_inputs_behind(flat, contents, batch_run, nodes))


def looked_at_continuous(
    flat: FlatGraph, contents: Contents, batch_run: BatchRun
) -> list[tuple[list[str], Look]]:
    """The continuous inputs behind values that PyTorch looked at itself."""
    pinned = dict(batch_run.path.pinned)
    looks = zip(_inputs_behind(flat, contents, batch_run, _looked_at(flat)), flat.looked_at, strict=True)
    return [(rest, look) for names, look in looks if (rest := sorted(names - pinned.keys()))]


def _looked_at(flat: FlatGraph) -> list[Node]:
    return [look.node for look in flat.looked_at]


def _inputs_behind(
    flat: FlatGraph, contents: Contents, batch_run: BatchRun, nodes: Sequence[Node]
) -> list[frozenset[str]]:
    """The names of the sites and parameters that each of these nodes depends on."""
    if not nodes:
        return []
    places = [*batch_run.values, *(None for _ in contents.subsampled), *contents.open]
    depends: dict[Any, frozenset[str]] = {
        node: frozenset([name]) for name, node in zip(places, flat.inputs, strict=True) if name is not None
    }
    for node in flat.operations:
        sources = (depends.get(source, frozenset()) for source in node.sources)
        depends[node] = frozenset[str]().union(*sources)
    return [depends.get(node, frozenset()) for node in nodes]
