"""Explore: the paths that a batch of seeds takes, one slow run of the program for each path."""

from collections.abc import Collection, Iterator, Mapping

import numpy as np

from pathmix.execution import Execution
from pathmix.frontends.base import Have
from pathmix.frontends.numpyro.record import record
from pathmix.program import Program
from pathmix.seeds import Seed

# When no more than these are left of a batch, only so many run: enough for draws of the rarer paths. Each
# size compiles every operation anew, so there are no others.
_LAST_ROWS = 256


def explore(
    program: Program,
    seed: Seed,
    wanted: np.ndarray,
    *,
    given: Mapping[str, np.ndarray] | None = None,
    complete: bool = False,
    simulate: Collection[str] | None = None,
    have: Have | None = None,
) -> Iterator[Execution]:
    """See `Frontend.explore`. One run gives draws for the whole batch, few or many."""
    del have
    seeds, left, given = seed.batch(len(wanted)), wanted.copy(), given or {}
    rows = np.arange(len(wanted))
    while np.any(left):
        if left.sum() <= _LAST_ROWS < len(rows):
            rows = np.sort(np.argsort(~left, stable=True)[:_LAST_ROWS])
            seeds = tuple(keys[rows] for keys in seeds)
            given = {name: values[rows] for name, values in given.items()}
        leader = int(np.argmax(left[rows]))
        execution = record(program, seeds, leader, given=given, complete=complete, simulate=simulate)
        if len(rows) < len(left):
            execution = execution.spread(rows, len(left))
        yield execution
        left &= ~execution.followed
