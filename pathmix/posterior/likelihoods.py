"""The log-likelihood of new data at latent values that are already drawn."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from pathmix.engine.batching import in_batches, over_rows
from pathmix.engine.executables import Executables
from pathmix.program.program import Program
from pathmix.program.runs import runs
from pathmix.program.seeds import Seed
from pathmix.program.slp import StraightLineProgram
from pathmix.program.wishes import Wishes

TOGETHER = "all observed sites"
_ROWS = 32  # of densities computed at once


def log_likelihoods(
    program: Program, latent: Mapping[str, np.ndarray], *, pointwise: bool
) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Rows of latent values, and the log-likelihoods there of the elements of a site, or of all together.

    New arguments may lead rows of one path apart, so the program is run again to find their paths.
    """
    count = len(next(iter(latent.values())))
    executables = Executables()
    for rows, _, batch_run in runs(program, Wishes(latent, complete=True), Seed.of(0), count):
        slp = program.frontend.replay(program, batch_run)
        sites = slp.pointwise if pointwise else ((TOGETHER, slp.LOG_LIKELIHOOD),)
        make = partial(_make, slp, [slot for _, slot in sites])
        values = [latent[name].astype(batch_run.values[name].dtype) for name in batch_run.path.addresses]
        call = partial(executables.call, batch_run.path, make)
        results = in_batches(call, [column[rows] for column in values], _ROWS)
        for (site, _), found in zip(sites, results, strict=True):
            yield site, rows, found


def _make(slp: StraightLineProgram, slots: list[int]) -> Callable[..., Any]:
    # At the values of a draw, also of sites that were summed out for the fit.
    whole = slp.graph if slp.summation is None else slp.summation.before
    graph = whole.outputs(slots)
    return lambda columns: over_rows(lambda *row: graph(graph.consts, row))(*columns)
