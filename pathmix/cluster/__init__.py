"""Batches of paths on other processes and machines."""

from pathmix.cluster.bench import Done, compute
from pathmix.engine.jobs import Crew, Executor, Job

__all__ = ["Crew", "Done", "Executor", "Job", "compute"]
