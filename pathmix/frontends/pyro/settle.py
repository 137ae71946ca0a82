"""Settle: the straight-line program of a path without free sites, from one run along it.

Nothing is left to vary, so density, conditions and deterministic sites are numbers, and all paths with as
many of them have one structure.
"""

from dataclasses import replace

import jax
import numpy as np
import torch

from pathmix.errors import HiddenRandomnessError
from pathmix.frontends.decisions import seen
from pathmix.frontends.pyro.contents import FIRST, Contents, Lowered, deciding
from pathmix.frontends.pyro.flatten import FlatGraph
from pathmix.frontends.pyro.lowering.dtypes import as_jax_dtype, as_numpy
from pathmix.frontends.supports import SupportBounds, integer_bounds
from pathmix.program.batch_run import BatchRun
from pathmix.program.graph import Graph


def settle(flat: FlatGraph, contents: Contents, batch_run: BatchRun) -> Lowered:
    """The outputs of the flat graph at the values of the path, in the order that `lower` gives them."""
    decided, binding = contents.decided(flat), contents.binding(flat)
    decisions = tuple(batch_run.path.decisions[i] for i in decided)
    for i, decision in zip(decided, decisions, strict=True):
        if seen(as_numpy(flat.values[FIRST + i]), decision.kind) != decision:
            raise HiddenRandomnessError(f"this time it took another decision at {batch_run.sources[i]}")
    outputs = [_as_engine(value) for value in flat.values[:FIRST]]
    outputs += [np.array(True) for _ in decisions]
    outputs += [np.array(bool(flat.values[contents.cover(number)].all())) for number in binding]

    rest = iter(flat.values[contents.cover(len(contents.observations)) :])
    limits: dict[str, SupportBounds] = {}
    for name, (build, parameters) in contents.supports.items():
        limits[name] = integer_bounds(build([as_numpy(next(rest)) for _ in parameters]))
    deterministics, drawn, pointwise = {}, {}, {}
    for slots, names in (
        (deterministics, contents.deterministics),
        (drawn, contents.drawn),
        (pointwise, contents.pointwise),
    ):
        for name in names:
            slots[name] = len(outputs)
            outputs.append(_as_engine(next(rest)))

    inputs = [jax.ShapeDtypeStruct(values.shape[1:], values.dtype) for values in batch_run.values.values()]
    return Lowered(
        graph=Graph.known(outputs, inputs),
        path=replace(batch_run.path, decisions=decisions),
        sources=tuple(batch_run.sources[i] for i in decided),
        indicators=contents.indicators(flat),
        flaw=contents.flaw(flat),
        bijections={},
        bounds=limits,
        bounds_here={},
        deterministics=tuple(deterministics.items()),
        drawn=tuple(drawn.items()),
        masks=(),
        pointwise=tuple(pointwise.items()),
        priors={},
        terms=(),
        decided_after=tuple(contents.decided_after[i] for i in decided),
        looked_at=deciding(flat, contents, batch_run),
    )


def _as_engine(value: torch.Tensor) -> np.ndarray:
    return np.asarray(as_numpy(value), as_jax_dtype(value.dtype))
