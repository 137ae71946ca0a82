"""Lower: the flat graph of a path as a JAX graph, with what its outputs mean."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpyro.distributions import biject_to

from pathmix.frontends.decisions import holds
from pathmix.frontends.priors import prior
from pathmix.frontends.pyro.contents import Contents, Lowered, deciding
from pathmix.frontends.pyro.flatten import FlatGraph
from pathmix.frontends.pyro.lowering.dtypes import as_numpy
from pathmix.frontends.pyro.lowering.interpret import interpreter
from pathmix.frontends.supports import Ranges, SupportBounds, bounds, integer_bounds, template
from pathmix.program.batch_run import BatchRun
from pathmix.program.graph import Graph
from pathmix.program.lifting import captured
from pathmix.program.slp import BijectionTemplate, Prior, TermOutput


def lower(flat: FlatGraph, contents: Contents, batch_run: BatchRun) -> Lowered:
    """Read the flat graph in JAX, with pinned sites at their values.

    What depends on no site is no decision of the path.
    """
    looked_at = deciding(flat, contents, batch_run)
    known = flat.known
    # Each call to JAX that makes an array takes longer than an operation.
    numbers = {node: value for node, value in known.items() if value.ndim == 0 and value.is_floating_point()}
    interpreted = interpreter(flat, numbers)
    decided, binding = contents.decided(flat), contents.binding(flat)
    decisions = tuple(batch_run.path.decisions[i] for i in decided)
    bijections: dict[str, BijectionTemplate] = {}
    limits: dict[str, SupportBounds] = {}
    ranges = Ranges()
    deterministics: dict[str, int] = {}
    drawn: dict[str, int] = {}
    masks: dict[str, int] = {}
    pointwise: dict[str, int] = {}
    priors: dict[str, Prior] = {}
    terms: list[TermOutput] = []

    def density(*inputs: jax.Array) -> list[Any]:
        values = interpreted(*inputs)
        nodes = iter(flat.outputs)
        outputs = [values[next(nodes)], values[next(nodes)]]
        raw = [values[next(nodes)] for _ in contents.decided_after]
        outputs += [holds(raw[i], d) for i, d in zip(decided, decisions, strict=True)]
        covers = [(next(nodes), next(nodes))[0] for _ in contents.observations]
        outputs += [jnp.all(values[covers[number]]) for number in binding]
        for name, (build, parameters) in contents.supports.items():
            parts = [next(nodes) for _ in parameters]
            support = build([as_numpy(known[n]) if n in known else values[n] for n in parts])
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
            (pointwise, contents.pointwise),
        )
        for slots, names in further:
            for name in names:
                slots[name] = len(outputs)
                outputs.append(values[next(nodes)])
        for name, (family, parameters) in contents.drawn_from.items():
            parts = [next(nodes) for _ in parameters]
            priors[name] = prior(
                family, [as_numpy(known[n]) if n in known else values[n] for n in parts], outputs
            )
        for name, (is_prior, is_plain) in contents.terms.items():
            is_own = name in batch_run.path.summed and is_plain
            terms.append(TermOutput(name, len(outputs), is_prior, is_own))
            outputs.append(values[next(nodes)])
        return outputs

    learned = [parameter.name for parameter in contents.parameters]

    def by_parameters(numbers: Sequence[jax.Array], *inputs: jax.Array) -> list[Any]:
        given = {**contents.open, **dict(zip(learned, inputs, strict=False))}
        return density(*numbers, *inputs[len(learned) :], *given.values())

    values = [contents.open[name] for name in learned]
    avals = [jax.ShapeDtypeStruct(np.shape(value), jnp.result_type(float)) for value in values]
    avals += [jax.ShapeDtypeStruct(values.shape[1:], values.dtype) for values in batch_run.values.values()]
    avals += [
        jax.ShapeDtypeStruct((plate.subsample_size,), jnp.arange(1).dtype) for plate in contents.subsampled
    ]
    floats = [np.asarray(as_numpy(value), jnp.result_type(float)) for value in numbers.values()]
    graph = captured(Graph.of(jax.make_jaxpr(by_parameters)(floats, *avals), floats), values)
    return Lowered(
        graph=graph,
        path=replace(batch_run.path, decisions=decisions),
        sources=tuple(batch_run.sources[i] for i in decided),
        indicators=contents.indicators(flat),
        flaw=contents.flaw(flat),
        bijections=bijections,
        bounds=limits,
        bounds_here=ranges.known(graph, batch_run.known) if not contents.subsampled else {},
        deterministics=tuple(deterministics.items()),
        drawn=tuple(drawn.items()),
        masks=tuple(masks.items()),
        pointwise=tuple(pointwise.items()),
        priors=priors,
        terms=tuple(terms),
        decided_after=tuple(contents.decided_after[i] for i in decided),
        looked_at=looked_at,
    )
