"""Explore: the paths that a batch of seeds takes, one slow run of the program for each path."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from pathmix.frontends.numpyro.record import record
from pathmix.program.batch_run import BatchRun
from pathmix.program.failures import FailedRun, OnFailure
from pathmix.program.program import Have, Program
from pathmix.program.seeds import Seed
from pathmix.program.wishes import Wishes

# When no more than these are left of a batch, only so many run: enough for draws of the rarer paths. Each
# size compiles every operation anew, so there are no others.
_LAST_ROWS = 256


def explore(
    program: Program,
    seed: Seed,
    wanted: np.ndarray,
    *,
    wishes: Wishes = Wishes(),
    have: Have | None = None,
    on_failure: OnFailure | None = None,
) -> Iterator[BatchRun]:
    """See `Frontend.explore`. One run gives draws for the whole batch, few or many."""
    del have
    seeds, left = seed.batch(len(wanted)), wanted.copy()
    rows = np.arange(len(wanted))
    while np.any(left):
        if left.sum() <= _LAST_ROWS < len(rows):
            rows = np.sort(np.argsort(~left, stable=True)[:_LAST_ROWS])
            seeds = tuple(keys[rows] for keys in seeds)
            wishes = wishes.rows(rows)
        leader = int(np.argmax(left[rows]))
        found = record(program, seeds, leader, wishes)
        if isinstance(found, FailedRun):
            if on_failure is None:
                raise found.error
            followed = np.isin(np.arange(len(left)), rows[found.followed])
            on_failure(replace(found, followed=followed))
            left &= ~followed
            continue
        batch_run = found.spread(rows, len(left)) if len(rows) < len(left) else found
        yield batch_run
        left &= ~batch_run.followed
