"""Brute force: paths, prior masses and evidences by simulating the prior, and densities of given runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from pathmix.program.path import Decision, Path
from tests.random_programs import grammar as g
from tests.random_programs.simulation import Runs, simulate


@dataclass(frozen=True, eq=False)
class Brute:
    """What prior runs say of one path."""

    runs: Runs  # those that took it
    total: int  # of all

    @property
    def count(self) -> int:
        return len(self.runs.rows)

    @property
    def weights(self) -> np.ndarray:
        return np.exp(self.runs.log_likelihood)

    @property
    def effective(self) -> float:
        """How many draws of the posterior the runs are worth."""
        return float(self.weights.sum() ** 2 / (self.weights**2).sum())

    @property
    def log_evidence(self) -> float:
        return float(np.log(self.weights.sum() / self.total))

    @property
    def error(self) -> float:
        """Standard error of the log-evidence; runs on other paths count as zero."""
        mean = self.weights.sum() / self.total
        variance = (self.weights**2).sum() / self.total - mean**2
        return float(np.sqrt(variance / self.total) / mean)


def brute_force(program: g.Program, count: int, seed: int = 0) -> dict[Path, Brute]:
    """By path, what so many prior runs give."""
    generator = np.random.default_rng(seed)
    groups = simulate(program, count, lambda runs, address, law: law.draw(generator))
    return {path: Brute(runs, count) for group in groups for path, runs in by_path(group)}


def given(program: g.Program, values: Mapping[str, np.ndarray]) -> dict[Path, Runs]:
    """By path, the runs that draw these values, with their densities."""
    count = len(next(iter(values.values())))
    groups = simulate(program, count, lambda runs, address, law: np.asarray(values[address])[runs.rows])
    return {path: runs for group in groups for path, runs in by_path(group)}


def by_path(group: Runs) -> list[tuple[Path, Runs]]:
    """Runs that decided alike, by the values of their discrete sites."""
    names = [name for name in group.sites if name in group.discrete]
    columns = [group.sites[name].reshape(len(group.rows), -1) for name in names]
    drawn = np.concatenate(columns, axis=1) if names else np.zeros((len(group.rows), 0))
    found, which = np.unique(drawn, axis=0, return_inverse=True)
    result = []
    for number in range(len(found)):
        runs = group.take(np.flatnonzero(which.ravel() == number))
        pinned = tuple((name, _as_tuples(runs.sites[name][0])) for name in names)
        decisions = tuple(Decision(kind, value) for kind, value in runs.decisions)
        result.append((Path(tuple(runs.sites), decisions, pinned), runs))
    return result


def _as_tuples(value: np.ndarray) -> int | tuple[int, ...]:
    return int(value) if value.ndim == 0 else tuple(value.astype(int).tolist())
