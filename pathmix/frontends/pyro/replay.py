"""Replay: trace a Pyro program along a recorded path into a straight-line program.

The program runs once more, at the values of the leading run, while its operations are written down as a flat
graph; the graph is then read by JAX. Latent values are its inputs; decisions are answered from the record,
and the condition for each to come out so is an output. A path without free sites has nothing to trace for:
the run itself gives all that its graph would.
"""

from typing import Any

import numpy as np
import torch

from pathmix.doors.pyro import module_parameters
from pathmix.errors import ProgramError
from pathmix.frontends.parameters import check_known
from pathmix.frontends.pyro.contents import Lowered, having_say, looked_at_continuous
from pathmix.frontends.pyro.flatten import FlatGraph, flatten
from pathmix.frontends.pyro.floats import random_floats
from pathmix.frontends.pyro.lower import lower
from pathmix.frontends.pyro.lowering.dtypes import as_numpy
from pathmix.frontends.pyro.plates import subsampling
from pathmix.frontends.pyro.replayer import Replayer
from pathmix.frontends.pyro.scope import frontend_scope
from pathmix.frontends.pyro.settle import settle
from pathmix.frontends.undecided import without_summed
from pathmix.program.batch_run import BatchRun
from pathmix.program.graph import Graph
from pathmix.program.lifting import check_learnable
from pathmix.program.program import Program
from pathmix.program.slp import Facts, Plate, StraightLineProgram


def replay(program: Program, batch_run: BatchRun) -> StraightLineProgram:
    """The straight-line program of a recorded path."""
    return batch_run.summed or without_summed(program, _complete(program, batch_run), batch_run)


def deciding_sites(program: Program, batch_run: BatchRun) -> frozenset[str]:
    """Of the sites that are to be summed out, those that have a say all the same."""
    with frontend_scope():
        flat, seen = _trace(program, batch_run, plates=None, computed_indices=True)
        return having_say(flat, seen.contents(), batch_run) & set(batch_run.path.summed)


def _complete(program: Program, batch_run: BatchRun) -> StraightLineProgram:
    """With all its sites."""
    with frontend_scope():
        flat, seen = _whole(program, batch_run)
        settled_by_run = not batch_run.path.has_free_sites and not batch_run.path.summed
        if settled_by_run and not seen.parameters.learned:
            settled = settle(flat, seen.contents(), batch_run)
            return _program(batch_run, seen, settled, flat.fingerprint, (), None)
        lowered = lower(flat, seen.contents(), batch_run)
        minibatch = None
        if seen.plates:
            part, seen_of_part = _trace(
                program, batch_run, plates=seen.plates, computed_indices=seen.lookups.computed_indices
            )
            minibatch = lower(part, seen_of_part.contents(), batch_run).graph
    return _program(batch_run, seen, lowered, flat.fingerprint, seen.plates, minibatch)


def repeats(program: Program, batch_run: BatchRun, slp: StraightLineProgram) -> bool:
    """Whether the program does the same along the path once more; JAX would then read the same in it."""
    with frontend_scope():
        return _whole(program, batch_run)[0].fingerprint == slp.fingerprint


def _whole(program: Program, batch_run: BatchRun) -> tuple[FlatGraph, Replayer]:
    """The program on all its data."""
    if batch_run.path.summed:
        return _trace(program, batch_run, plates=None, computed_indices=True)
    flat, seen = _trace(program, batch_run, plates=None)
    if looked_at_continuous(flat, seen.contents(), batch_run):  # perhaps as an index, which can stay a tensor
        return _trace(program, batch_run, plates=None, computed_indices=True)
    return flat, seen


def _program(
    batch_run: BatchRun,
    seen: Replayer,
    lowered: Lowered,
    fingerprint: str,
    plates: tuple[Plate, ...],
    minibatch: Graph | None,
) -> StraightLineProgram:
    slp = StraightLineProgram(
        path=lowered.path,
        recorded=batch_run.path,
        sources=lowered.sources,
        sites=tuple(
            batch_run.site(
                name,
                lowered.bijections.get(name),
                lowered.bounds.get(name),
                lowered.bounds_here.get(name),
                lowered.priors.get(name),
                never=seen.never.get(name, frozenset()),
            )
            for name in batch_run.path.addresses
        ),
        graph=lowered.graph,
        deterministics=lowered.deterministics,
        drawn=lowered.drawn,
        decided_after=lowered.decided_after,
        params=tuple(seen.parameters.names),
        observed=tuple(seen.observed),
        facts=Facts(
            is_conditioned=seen.is_conditioned,
            flaw=lowered.flaw,
            remarks=tuple(seen.remarks),
        ),
        masks=lowered.masks,
        pointwise=lowered.pointwise,
        terms=lowered.terms,
        indicators=lowered.indicators,
        plates=plates,
        minibatch=minibatch,
        looked_at=lowered.looked_at,
        fingerprint=fingerprint,
        parameters=tuple(seen.parameters.learned.values()),
    )
    check_learnable(slp)
    return slp


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
    inputs += [value.clone() for value in replayer.parameters.open.values()]

    def density(*values: torch.Tensor) -> list[Any]:
        replayer.begin(values)
        with (
            subsampling(replayer.choose),
            replayer.lookups,
            replayer.parameters.in_place(),
            module_parameters(replayer.parameters.check_start),
            random_floats(program.model),
            replayer,
        ):
            program()
        return replayer.outputs()

    try:
        flat = flatten(density, inputs, _pinned(batch_run), replayer.inside)
    except RuntimeError as error:
        if "mutation on a view" not in str(error):
            raise
        raise ProgramError(
            "The program writes into a tensor through a view that PyTorch cannot follow (torch.as_strided). "
            "Write into the tensor itself, by an index."
        ) from error
    replayer.following.check_complete()
    # What distributions take is there to be looked at where it depends on no site; nothing else needs it.
    first = len(flat.outputs) - len(replayer.checked)
    for (parameter, site, source), node in zip(replayer.checked, flat.outputs[first:], strict=True):
        if node in flat.constants:
            check_known(parameter, as_numpy(flat.constants[node]), site, source)
    return flat, replayer


def _pinned(batch_run: BatchRun) -> set[int]:
    pinned = dict(batch_run.path.pinned)
    return {place for place, name in enumerate(batch_run.values) if name in pinned}


def _as_torch(values: np.ndarray) -> torch.Tensor:
    tensor = torch.as_tensor(np.array(values))
    return tensor if tensor.is_floating_point() or tensor.dtype is torch.bool else tensor.long()
