"""Many runs of a program with values put in, a batch at a time."""

from collections.abc import Iterator

import numpy as np

from pathmix.program.batch_run import BatchRun
from pathmix.program.program import Program
from pathmix.program.seeds import Seed
from pathmix.program.wishes import Wishes

_BATCH = 128


def runs(
    program: Program, wishes: Wishes, seed: Seed, count: int
) -> Iterator[tuple[np.ndarray, np.ndarray, BatchRun]]:
    """For each path in each batch: its rows among all runs, their places in the batch, and the batch run.

    New arguments may lead rows of one path apart. A batch that is not full is filled up by repetition: one
    batch size, compiled once.
    """
    for start in range(0, count, _BATCH):
        rows = np.arange(start, start + _BATCH) % count
        wanted = np.arange(_BATCH) < count - start
        found = program.frontend.explore(program, seed.child(start), wanted, wishes=wishes.rows(rows))
        for batch_run in found:
            done = batch_run.followed & wanted
            yield rows[done], done, batch_run
