"""Replay: trace a Pyro program along a recorded path into a straight-line program.

The program runs once more, at the values of the leading run, while its operations are written down as a flat
graph; the graph is then read by JAX. Latent values are its inputs; decisions are answered from the record,
and the condition for each to come out so is an output. A path without free sites has nothing to trace for:
the run itself gives all that its graph would.
"""

from typing import Any

import numpy as np
import torch

from pathmix.frontends.parameters import check_known
from pathmix.frontends.pyro.contents import Lowered, looked_at_continuous
from pathmix.frontends.pyro.flatten import FlatGraph, flatten
from pathmix.frontends.pyro.lower import lower
from pathmix.frontends.pyro.lowering.dtypes import as_numpy
from pathmix.frontends.pyro.plates import subsampling
from pathmix.frontends.pyro.replayer import Replayer
from pathmix.frontends.pyro.scope import frontend_scope
from pathmix.frontends.pyro.settle import settle
from pathmix.program.batch_run import BatchRun
from pathmix.program.graph import Graph
from pathmix.program.program import Program
from pathmix.program.slp import Facts, Plate, StraightLineProgram


def replay(program: Program, batch_run: BatchRun) -> StraightLineProgram:
    """The straight-line program of a recorded path."""
    with frontend_scope():
        computed = False
        flat, seen = _trace(program, batch_run, plates=None)
        if not batch_run.path.has_free_sites:
            return _program(batch_run, seen, settle(flat, seen.contents(), batch_run), (), None)
        if looked_at_continuous(flat, batch_run):
            computed = True  # perhaps as an index, which can stay a tensor
            flat, seen = _trace(program, batch_run, plates=None, computed_indices=True)
        lowered = lower(flat, seen.contents(), batch_run)
        minibatch = None
        if seen.plates:
            part, seen_of_part = _trace(program, batch_run, plates=seen.plates, computed_indices=computed)
            minibatch = lower(part, seen_of_part.contents(), batch_run).graph
    return _program(batch_run, seen, lowered, seen.plates, minibatch)


def _program(
    batch_run: BatchRun,
    seen: Replayer,
    lowered: Lowered,
    plates: tuple[Plate, ...],
    minibatch: Graph | None,
) -> StraightLineProgram:
    return StraightLineProgram(
        path=lowered.path,
        recorded=batch_run.path,
        sources=lowered.sources,
        sites=tuple(
            batch_run.site(
                name, lowered.bijections.get(name), lowered.bounds.get(name), lowered.bounds_here.get(name)
            )
            for name in batch_run.path.addresses
        ),
        graph=lowered.graph,
        deterministics=lowered.deterministics,
        drawn=lowered.drawn,
        decided_after=lowered.decided_after,
        params=tuple(seen.params),
        observed=tuple(seen.observed),
        facts=Facts(
            is_conditioned=seen.is_conditioned,
            flaw=lowered.flaw,
            remarks=tuple(seen.remarks),
        ),
        masks=lowered.masks,
        indicators=lowered.indicators,
        plates=plates,
        minibatch=minibatch,
        looked_at=lowered.looked_at,
    )


def _trace(
    program: Program,
    batch_run: BatchRun,
    plates: tuple[Plate, ...] | None,
    *,
    computed_indices: bool = False,
) -> tuple[FlatGraph, Replayer]:
    leader = int(np.argmax(batch_run.followed))
    inputs = [_as_torch(values[leader]) for values in batch_run.values.values()]
    inputs += [torch.arange(plate.subsample_size) for plate in plates or ()]
    replayer = Replayer(program, batch_run, plates, computed_indices=computed_indices)

    def density(*values: torch.Tensor) -> list[Any]:
        replayer.begin(values)
        with subsampling(replayer.choose), replayer.lookups, replayer:
            program()
        return replayer.outputs()

    flat = flatten(density, inputs)
    replayer.following.check_complete()
    # Parameters are there to be looked at where they depend on no site; nothing else needs them.
    first = len(flat.outputs) - len(replayer.parameters)
    for (parameter, site, source), node in zip(replayer.parameters, flat.outputs[first:], strict=True):
        if node in flat.constants:
            check_known(parameter, as_numpy(flat.constants[node]), site, source)
    return flat, replayer


def _as_torch(values: np.ndarray) -> torch.Tensor:
    tensor = torch.as_tensor(np.array(values))
    return tensor if tensor.is_floating_point() or tensor.dtype is torch.bool else tensor.long()
