"""Lower: the flat graph of a path as a JAX graph, with what its outputs mean."""

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import torch
from numpyro.distributions import biject_to

from pathmix.errors import ProgramError
from pathmix.execution import Execution
from pathmix.frontends.decisions import holds
from pathmix.frontends.pyro.flatten import FlatGraph
from pathmix.frontends.pyro.lowering.dtypes import as_numpy
from pathmix.frontends.pyro.lowering.interpret import interpret
from pathmix.frontends.pyro.supports import Support
from pathmix.frontends.source import Source
from pathmix.frontends.supports import Bounds, bounds, integer_bounds, template
from pathmix.graph import Graph
from pathmix.path import Path
from pathmix.slp import BijectionTemplate, Plate, StraightLineProgram


@dataclass(frozen=True, eq=False)
class Contents:
    """What the flat graph gives: log-prior, log-likelihood, and in this order the following."""

    decisions: int  # values that were looked at, random or not
    supports: dict[str, Support]  # their parameters
    discrete: frozenset[str]  # sites among them
    deterministics: tuple[str, ...]
    subsampled: tuple[Plate, ...]  # their indices are inputs, after the sites


@dataclass(frozen=True, eq=False)
class Lowered:
    """The graph in JAX, and what its outputs are."""

    graph: Graph
    path: Path
    sources: tuple[Source, ...]
    bijections: dict[str, BijectionTemplate]
    bounds: dict[str, Bounds]
    deterministics: tuple[tuple[str, int], ...]
    looked_at: frozenset[str]


def lower(flat: FlatGraph, contents: Contents, execution: Execution) -> Lowered:
    """Read the flat graph in JAX. What depends on no site is no decision of the path."""
    looked_at = _looked_at(flat, execution)
    first = StraightLineProgram.FIRST_CONDITION
    decided = range(first, first + contents.decisions)
    random = [i for i in decided if flat.outputs[i] not in flat.constants]
    decisions = tuple(execution.path.decisions[i - first] for i in random)
    sources = tuple(execution.sources[i - first] for i in random)
    bijections: dict[str, BijectionTemplate] = {}
    limits: dict[str, Bounds] = {}
    deterministics: dict[str, int] = {}

    def density(*inputs: jax.Array) -> list[Any]:
        values = interpret(flat, inputs)
        nodes = iter(flat.outputs)
        outputs = [values[next(nodes)], values[next(nodes)]]
        raw = [values[next(nodes)] for _ in decided]
        outputs += [holds(raw[i - first], d) for i, d in zip(random, decisions, strict=True)]
        for name, (build, parameters) in contents.supports.items():
            parts = [next(nodes) for _ in parameters]
            known = [flat.constants[n] if n in flat.constants else values[n] for n in parts]
            support = build([as_numpy(v) if isinstance(v, torch.Tensor) else v for v in known])
            if name in contents.discrete:
                limits[name] = integer_bounds(support)
                continue
            limits[name] = bounds(support)
            bijections[name] = template(biject_to(support), outputs)
        for name in contents.deterministics:
            deterministics[name] = len(outputs)
            outputs.append(values[next(nodes)])
        return outputs

    avals = [jax.ShapeDtypeStruct(values.shape[1:], values.dtype) for values in execution.values.values()]
    avals += [
        jax.ShapeDtypeStruct((plate.subsample_size,), jnp.arange(1).dtype) for plate in contents.subsampled
    ]
    graph = Graph.of(jax.make_jaxpr(density)(*avals))
    path = replace(execution.path, decisions=decisions)
    return Lowered(graph, path, sources, bijections, limits, tuple(deterministics.items()), looked_at)


def _looked_at(flat: FlatGraph, execution: Execution) -> frozenset[str]:
    """Sites whose values PyTorch looked at itself. That is no decision, so they must be discrete."""
    depends: dict[Any, frozenset[str]] = {
        node: frozenset([name]) for name, node in zip(execution.values, flat.inputs, strict=False)
    }
    for node in flat.operations:
        sources = (depends.get(source, frozenset()) for source in node.all_input_nodes)
        depends[node] = frozenset[str]().union(*sources)
    pinned = dict(execution.path.pinned)
    for node, source in flat.looked_at:
        if continuous := sorted(depends.get(node, frozenset()) - pinned.keys()):
            raise ProgramError(
                f"At {source} PyTorch needs a number, and gets a random value that depends on "
                f"{', '.join(map(repr, continuous))}. Make the number in the program, where it can be seen: "
                "int(k), or compare the value."
            )
    return frozenset[str]().union(*(depends.get(node, frozenset()) for node, _ in flat.looked_at))
