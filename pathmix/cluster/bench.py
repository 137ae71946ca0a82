"""A worker's bench: it computes jobs, and keeps what it has compiled."""

import time
from functools import cached_property
from typing import NamedTuple

import jax
import numpy as np

from pathmix.engine.executables import Executables
from pathmix.engine.jobs import Job
from pathmix.engine.members import Column
from pathmix.engine.precision import engine_scope


class Done(NamedTuple):
    """What became of a job."""

    results: list[np.ndarray | None]
    seconds: float
    was_new: bool  # and had to be compiled


class Bench:
    """Computes jobs one after another, in one process."""

    @cached_property
    def _executables(self) -> Executables:
        """Made in the process that uses it: it asks JAX for its devices."""
        return Executables()

    def compute(self, job: Job) -> Done:
        """The results of a job."""
        begun = time.perf_counter()
        with engine_scope(job.engine):
            built = self._executables.built
            fixed = [jax.numpy.asarray(leaf) for leaf in job.fixed]
            moving = [leaf.made() if isinstance(leaf, Column) else leaf for leaf in job.moving]
            found = self._executables.call(job.function.digest, job.function.read, fixed, moving)
            results = [
                None if place in job.unread else np.asarray(leaf)[: job.members]
                for place, leaf in enumerate(jax.tree.leaves(found))
            ]
        return Done(results, time.perf_counter() - begun, self._executables.built > built)


_bench = Bench()


def compute(job: Job) -> Done:
    """The results of a job, by this process; for workers of executors."""
    return _bench.compute(job)
