"""The log-likelihood of new data at latent values that are already drawn."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from pathmix.engine.batching import in_batches, over_rows
from pathmix.engine.executables import Executables
from pathmix.program.program import Program
from pathmix.program.runs import runs
from pathmix.program.seeds import Seed
from pathmix.program.wishes import Wishes

_ROWS = 32  # of densities computed at once


def log_likelihoods(program: Program, latent: Mapping[str, np.ndarray]) -> np.ndarray:
    """Of the program's observed sites, for each row of latent values.

    New arguments may lead rows of one path apart, so the program is run again to find their paths.
    """
    count = len(next(iter(latent.values())))
    found = np.full(count, np.nan)
    executables = Executables()
    for rows, _, batch_run in runs(program, Wishes(latent, complete=True), Seed.of(0), count):
        make = partial(_make, program, batch_run)
        values = [latent[name].astype(batch_run.values[name].dtype) for name in batch_run.path.addresses]
        call = partial(executables.call, batch_run.path, make)
        found[rows] = in_batches(call, [column[rows] for column in values], _ROWS)
    return found


def _make(program: Program, batch_run: Any) -> Callable[..., Any]:
    slp = program.frontend.replay(program, batch_run)
    # At the values of a draw, also of sites that were summed out for the fit.
    whole = slp.graph if slp.summation is None else slp.summation.before
    graph = whole.outputs([slp.LOG_LIKELIHOOD])
    return lambda columns: over_rows(lambda *row: graph(graph.consts, row)[0])(*columns)
