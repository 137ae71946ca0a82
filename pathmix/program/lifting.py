"""Lifting: parameters that are learned are inputs of a path's graph, first of all, and have values there.

The graph has captured their present values, last of all. So a path at other values is the same graph with
other arrays, and shares its compiled code.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpyro.distributions.transforms import IdentityTransform

from pathmix.errors import ParameterError
from pathmix.program.graph import Graph
from pathmix.program.parameters import Parameter, Part, Values, plain, with_parts
from pathmix.program.slp import BijectionTemplate, Site, StraightLineProgram


def captured(graph: Graph, values: Sequence[np.ndarray]) -> Graph:
    """A graph with its first inputs put in, as arrays that it captured last."""
    return Graph(graph.jaxpr, (*graph.consts, *(jnp.asarray(value, float) for value in values)))


def parts_at(slp: StraightLineProgram) -> dict[Part, np.ndarray]:
    """The values that the learned parameters of a path have in its graph."""
    values = slp.graph.consts[len(slp.graph.consts) - len(slp.parameters) :]
    return {p.part: np.asarray(value) for p, value in zip(slp.parameters, values, strict=True)}


def parameters_of(slp: StraightLineProgram, values: Values) -> dict[str, Any]:
    """What the parameters of a path are, given their values in the program."""
    named = plain({name: values[name] for name in dict.fromkeys(slp.params) if name in values})
    return with_parts(named, parts_at(slp))


def at(slp: StraightLineProgram, parts: Mapping[Part, np.ndarray]) -> StraightLineProgram:
    """A path at other values of its parameters."""
    if not parts:
        return slp
    now = parts_at(slp) | {p.part: parts[p.part] for p in slp.parameters if p.part in parts}
    minibatch = slp.minibatch
    return replace(
        slp,
        # Bounds that depend on other numbers may depend on these.
        sites=tuple(
            replace(site, bounds=None) if site.bijection is not None and site.bijection.slots else site
            for site in slp.sites
        ),
        graph=captured(_without(slp.graph, len(now)), list(now.values())),
        summation=None
        if (summation := slp.summation) is None
        else replace(summation, before=captured(_without(summation.before, len(now)), list(now.values()))),
        minibatch=None if minibatch is None else captured(_without(minibatch, len(now)), list(now.values())),
    )


def lifted(slp: StraightLineProgram) -> StraightLineProgram:
    """A path whose parameters are free sites on the whole of R^n, with a flat density, before all others."""
    graph, count = _without(slp.graph, len(slp.parameters)), len(slp.parameters)

    def density(consts: Any, inputs: Any) -> list[Any]:
        values = [p.bijection(u) for p, u in zip(slp.parameters, inputs, strict=False)]
        return graph(consts, [*values, *inputs[count:]])

    sites = tuple(_as_site(parameter) for parameter in slp.parameters) + slp.sites
    shapes = [jax.ShapeDtypeStruct(site.shape, site.dtype) for site in sites]
    traced = Graph.of(jax.make_jaxpr(lambda *inputs: density(graph.consts, inputs))(*shapes))
    addresses = tuple(site.name for site in sites)
    return replace(
        slp,
        path=replace(slp.path, addresses=addresses),
        recorded=replace(slp.recorded, addresses=addresses),
        sites=sites,
        graph=traced,
        plates=(),
        minibatch=None,
        parameters=(),
        summation=None,  # nobody draws from it
    )


def site_of(part: Part) -> str:
    """The name that a parameter has as a site: no program can give it to one of its own."""
    return f"param {part.name} {part.number}"


def _as_site(parameter: Parameter) -> Site:
    everywhere = BijectionTemplate(jax.tree.structure(IdentityTransform()), ())
    return Site(
        name=site_of(parameter.part),
        shape=parameter.free_shape,
        dtype=np.dtype(jnp.result_type(float)),
        source=parameter.source,
        pinned=None,
        bijection=everywhere,
        bounds=(-np.inf, np.inf),
    )


def _without(graph: Graph, count: int) -> Graph:
    """A graph whose last captured arrays are inputs again, its first."""
    return Graph(graph.jaxpr, graph.consts[: len(graph.consts) - count])


def check_learnable(slp: StraightLineProgram) -> None:
    """Refuse parameters that are outside of their constraints, or move the region of a path.

    Draws do not show what comes in at the edge of a region.
    """
    for parameter, value in zip(slp.parameters, parts_at(slp).values(), strict=True):
        parameter.freed(value)
    count = len(slp.parameters)
    if not count or not slp.conditions:
        return
    graph = _without(slp.graph, count)
    moving: dict[int, tuple[str, int]] = {}  # sites by input: name, and a parameter behind the support
    for number, site in enumerate(slp.sites):
        if site.bijection is not None and site.bijection.slots:
            first = min(graph.outputs(site.bijection.slots).sites, default=count)
            if first < count:
                moving[count + number] = site.name, first
    decisions = len(slp.path.decisions)
    for number, output in enumerate(slp.conditions):
        where = f"the decision at {slp.sources[number]}" if number < decisions else ""
        where = where or f"the support of the observed site {slp.indicators[number - decisions]}"
        for index in sorted(graph.outputs([output]).sites):
            if index < count:
                raise _moves(slp.parameters[index], where)
            if index in moving:
                name, first = moving[index]
                raise _moves(slp.parameters[first], f"the support of {name!r}, and with it {where}")


def _moves(parameter: Parameter, what: str) -> ParameterError:
    return ParameterError(
        f"The parameter {parameter.name!r} at {parameter.source} moves {what}, so it cannot be learned: "
        "which draws belong to a path changes with it. Make it a sample statement with a prior, or keep "
        'parameters fixed (parameters="fixed").'
    )
