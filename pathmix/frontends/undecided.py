"""Discrete sites that decide nothing: summed out where that pays, else each of their values is a path."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from pathmix.errors import UnsupportedSiteError
from pathmix.program.batch_run import BatchRun
from pathmix.program.failures import FailedRun
from pathmix.program.program import Program
from pathmix.program.slp import StraightLineProgram
from pathmix.program.source import raised_at
from pathmix.summation.summing import CannotSumError, summed_out


def by_element(fn: Any, dist: Any) -> Any | None:
    """The distribution of single elements, where an event is nothing but a number of them.

    `dist` are the distributions of the library.
    """
    while isinstance(fn, dist.Independent):
        fn = fn.base_dist
    return None if fn.event_dim else fn


Replay = Callable[[Program, BatchRun], StraightLineProgram]


def without_summed(program: Program, slp: StraightLineProgram, batch_run: BatchRun) -> StraightLineProgram:
    """A path's program without the sites that are to be summed out; with all if they cannot be."""
    if slp.path.summed:
        rows = np.flatnonzero(batch_run.inside)
        try:
            found = summed_out(slp, {name: values[rows] for name, values in batch_run.values.items()})
        except CannotSumError as error:
            program.unsummed.update(dict.fromkeys(slp.path.summed, str(error)))
        else:
            return slp if found is None else found
    return replace(slp, unsummed=tuple(program.unsummed.items())) if program.unsummed else slp


def undivided(program: Program, batch_run: BatchRun, replay: Replay) -> BatchRun | None:
    """A run whose undecided sites are summed out; None if its path has to be divided by their values."""
    path = batch_run.path
    if path.summed and path not in program.split:
        try:
            slp = replay(program, batch_run)
        except UnsupportedSiteError:
            raise
        except Exception:  # said where the path's own program is made
            program.split[path] = True
        else:
            program.split[path] = slp.summation is None
            batch_run = replace(batch_run, summed=slp)
    return None if program.split.get(path) else batch_run


def too_much(error: UnsupportedSiteError, followed: np.ndarray) -> FailedRun:
    """Runs along a path that was only proposed, and has too much to sum."""
    return FailedRun(error, raised_at(error), None, followed, 0)
