"""Explore: the paths that a batch of seeds takes, one slow run of the program for each path."""

from collections.abc import Collection, Iterator, Mapping

import numpy as np

from pathmix.execution import Execution
from pathmix.frontends.base import Have
from pathmix.frontends.numpyro.record import record
from pathmix.program import Program
from pathmix.seeds import Seed


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
    seeds, left = seed.batch(len(wanted)), wanted.copy()
    while np.any(left):
        leader = int(np.argmax(left))
        execution = record(program, seeds, leader, given=given, complete=complete, simulate=simulate)
        yield execution
        left &= ~execution.followed
