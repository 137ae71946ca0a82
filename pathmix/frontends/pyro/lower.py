"""Lower: the flat graph of a path as a JAX graph, with what its outputs mean."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import torch
from numpyro.distributions import biject_to

from pathmix.errors import ProgramError
from pathmix.frontends.decisions import holds
from pathmix.frontends.observations import flaw_of
from pathmix.frontends.pyro.flatten import FlatGraph
from pathmix.frontends.pyro.lowering.dtypes import as_numpy
from pathmix.frontends.pyro.lowering.interpret import interpret
from pathmix.frontends.pyro.supports import Support
from pathmix.frontends.supports import Ranges, SupportBounds, bounds, integer_bounds, template
from pathmix.program.batch_run import BatchRun
from pathmix.program.graph import Graph
from pathmix.program.path import Path
from pathmix.program.slp import BijectionTemplate, Flaw, Plate, StraightLineProgram
from pathmix.program.source import Source


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
    subsampled: tuple[Plate, ...]  # their indices are inputs, after the sites


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
    decided_after: tuple[int, ...]
    looked_at: frozenset[str]


def lower(flat: FlatGraph, contents: Contents, batch_run: BatchRun) -> Lowered:
    """Read the flat graph in JAX. What depends on no site is no decision of the path."""
    looked_at = _looked_at(flat, batch_run)
    first = StraightLineProgram.FIRST_CONDITION
    decided = range(first, first + len(contents.decided_after))
    random = [i for i in decided if flat.outputs[i] not in flat.constants]
    decisions = tuple(batch_run.path.decisions[i - first] for i in random)
    sources = tuple(batch_run.sources[i - first] for i in random)
    bijections: dict[str, BijectionTemplate] = {}
    limits: dict[str, SupportBounds] = {}
    ranges = Ranges()
    deterministics: dict[str, int] = {}
    drawn: dict[str, int] = {}
    masks: dict[str, int] = {}
    first_cover = first + len(contents.decided_after)
    binding = [
        number
        for number, observation in enumerate(contents.observations)
        if observation.binds and flat.outputs[first_cover + 2 * number] not in flat.constants
    ]

    def density(*inputs: jax.Array) -> list[Any]:
        values = interpret(flat, inputs)
        nodes = iter(flat.outputs)
        outputs = [values[next(nodes)], values[next(nodes)]]
        raw = [values[next(nodes)] for _ in decided]
        outputs += [holds(raw[i - first], d) for i, d in zip(random, decisions, strict=True)]
        covers = [(next(nodes), next(nodes))[0] for _ in contents.observations]
        outputs += [jnp.all(values[covers[number]]) for number in binding]
        for name, (build, parameters) in contents.supports.items():
            parts = [next(nodes) for _ in parameters]
            known = [flat.constants[n] if n in flat.constants else values[n] for n in parts]
            support = build([as_numpy(v) if isinstance(v, torch.Tensor) else v for v in known])
            if name in contents.discrete:
                limits[name] = integer_bounds(support)
                if limits[name] is None:
                    ranges.add(name, support, outputs)
                continue
            limits[name] = bounds(support)
            bijections[name] = template(biject_to(support), outputs)
        further = (
            (deterministics, contents.deterministics),
            (drawn, contents.drawn),
            (masks, contents.masks),
        )
        for slots, names in further:
            for name in names:
                slots[name] = len(outputs)
                outputs.append(values[next(nodes)])
        return outputs

    avals = [jax.ShapeDtypeStruct(values.shape[1:], values.dtype) for values in batch_run.values.values()]
    avals += [
        jax.ShapeDtypeStruct((plate.subsample_size,), jnp.arange(1).dtype) for plate in contents.subsampled
    ]
    graph = Graph.of(jax.make_jaxpr(density)(*avals))
    path = replace(batch_run.path, decisions=decisions)
    seen = [contents.observations[number] for number in binding]
    indicators = tuple(f"{observation.name!r} at {observation.source}" for observation in seen)
    return Lowered(
        graph=graph,
        path=path,
        sources=sources,
        indicators=indicators,
        flaw=_flaw(flat, contents.observations, first_cover),
        bijections=bijections,
        bounds=limits,
        bounds_here=ranges.known(graph, batch_run.known) if not contents.subsampled else {},
        deterministics=tuple(deterministics.items()),
        drawn=tuple(drawn.items()),
        masks=tuple(masks.items()),
        decided_after=tuple(contents.decided_after[i - first] for i in random),
        looked_at=looked_at,
    )


def _flaw(flat: FlatGraph, observations: Sequence[Observation], first: int) -> Flaw | None:
    """What is wrong with the data, where that does not depend on latent sites."""
    for number, seen in enumerate(observations):
        nodes = flat.outputs[first + 2 * number : first + 2 * number + 2]
        if nodes[0] in flat.constants:
            inside = as_numpy(flat.constants[nodes[0]])
            value = as_numpy(flat.constants[nodes[1]]) if nodes[1] in flat.constants else None
            if flaw := flaw_of(seen.name, seen.source, value, inside, seen.support):
                return flaw
    return None


def _looked_at(flat: FlatGraph, batch_run: BatchRun) -> frozenset[str]:
    """Sites whose values PyTorch looked at itself. That is no decision, so they must be discrete."""
    for names, source in looked_at_continuous(flat, batch_run):
        raise ProgramError(
            f"At {source} PyTorch needs a number, and gets a random value that depends on "
            f"{', '.join(map(repr, names))}. Make the number in the program, where it can be seen: "
            "int(k), or compare the value."
        )
    return frozenset[str]().union(*_sites_looked_at(flat, batch_run))


def looked_at_continuous(flat: FlatGraph, batch_run: BatchRun) -> list[tuple[list[str], Source]]:
    """The continuous sites behind values that PyTorch looked at itself, and where."""
    pinned = dict(batch_run.path.pinned)
    looks = zip(_sites_looked_at(flat, batch_run), flat.looked_at, strict=True)
    return [(rest, source) for names, (_, source) in looks if (rest := sorted(names - pinned.keys()))]


def _sites_looked_at(flat: FlatGraph, batch_run: BatchRun) -> list[frozenset[str]]:
    """The sites behind each value that PyTorch looked at itself."""
    depends: dict[Any, frozenset[str]] = {
        node: frozenset([name]) for name, node in zip(batch_run.values, flat.inputs, strict=False)
    }
    for node in flat.operations:
        sources = (depends.get(source, frozenset()) for source in node.all_input_nodes)
        depends[node] = frozenset[str]().union(*sources)
    return [depends.get(node, frozenset()) for node, _ in flat.looked_at]
