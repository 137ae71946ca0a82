"""Explore: the paths that a batch of seeds takes, one slow run of the program for each path."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from pathmix.errors import UnsupportedSiteError
from pathmix.frontends.numpyro.lazily import TooManyRows
from pathmix.frontends.numpyro.record import record
from pathmix.frontends.numpyro.replay import replay
from pathmix.frontends.patience import Patience
from pathmix.frontends.tree import Tree
from pathmix.frontends.undecided import too_much, undivided
from pathmix.program.batch_run import BatchRun
from pathmix.program.failures import OnFailure, tell
from pathmix.program.program import Have, Program
from pathmix.program.seeds import Seed
from pathmix.program.wishes import Wishes


def explore(
    program: Program,
    seed: Seed,
    wanted: np.ndarray,
    *,
    wishes: Wishes = Wishes(),
    have: Have | None = None,
    on_failure: OnFailure | None = None,
) -> Iterator[BatchRun]:
    """See `Frontend.explore`. One run gives draws for the whole batch, few or many.

    A batch that does not fit into memory is divided.
    """
    del have
    left, parts = wanted.copy(), [np.arange(len(wanted))]
    done = np.zeros(len(wanted), bool)  # rows of parts that came before
    patience = Patience(program.limits, on_failure)
    while parts:
        rows = parts.pop(0)
        seeds, given, tree, own = seed.batch(len(wanted)).rows(rows), wishes.rows(rows), Tree(), ~done[rows]
        while np.any(left[rows]):
            try:
                bounded = replace(program, limits=patience.limits)
                found = record(bounded, seeds, int(np.argmax(left[rows])), given, tree)
            except TooManyRows as error:
                parts[:0] = _divided(rows, error.fitting)
                for waiting in patience.withdrawn():
                    left |= waiting.followed
                break
            if isinstance(found, BatchRun) and found.path.summed and wishes.simulate is None:
                try:
                    divided = undivided(program, found, replay)
                except UnsupportedSiteError as error:
                    if not wishes.proposed:
                        raise
                    followed = np.isin(np.arange(len(left)), rows[found.followed & own])
                    left &= ~followed
                    tell(too_much(error, followed), on_failure)
                    continue
                if divided is None:
                    tree = Tree()  # the last run ended where others go on
                    continue
                found = divided
            followed = np.zeros(len(left), bool)
            followed[rows[found.followed & own]] = True
            left &= ~followed
            if isinstance(found, BatchRun):
                patience.ended(len(found.site_sources), int(followed.sum()))
                found = replace(found, followed=found.followed & own, inside=found.inside & own)
                yield found.spread(rows, len(left)) if len(rows) < len(left) else found
            else:
                found = replace(found, followed=followed, ended=patience.runs)
                if not patience.puts_off(found):
                    tell(found, on_failure)
            for waiting in patience.again(is_last=not np.any(left[rows])):
                if patience.has_room(waiting):
                    left |= waiting.followed
                else:
                    tell(waiting, on_failure)
        else:
            done[rows] = True


def _divided(rows: np.ndarray, fitting: int) -> list[np.ndarray]:
    """Parts of one size, the last filled up with rows of others: each size compiles every operation anew."""
    size = 1 << (fitting.bit_length() - 1)
    starts = range(0, len(rows), size)
    return [rows[min(start, len(rows) - size) :][:size] for start in starts]
