"""The known paths of a program, in the order in which they were found."""

import numpy as np

from experiments.baselines.known_path import KnownPath, known_path
from pathmix.discovery import Discovered
from pathmix.discovery.steps import steps
from pathmix.engine.executables import Executables
from pathmix.program.batch_run import BatchRun
from pathmix.program.path import Path
from pathmix.program.program import Program
from pathmix.program.seeds import Seed
from pathmix.program.slp import StraightLineProgram
from pathmix.program.values import SiteRows
from pathmix.program.wishes import Wishes


class Book:
    """Discovered paths, and those that draws of a guide led to later."""

    def __init__(self, program: Program, seed: Seed) -> None:
        self.program = program
        self.runs = 0  # of the program, after discovery
        self._asked = 0
        self._seed = seed
        self._executables = Executables()
        self._paths: dict[Path, KnownPath] = {}

    @property
    def paths(self) -> tuple[KnownPath, ...]:
        return tuple(self._paths.values())

    def enter(self, found: Discovered) -> None:
        for path in found.paths:
            self._add(path.slp, path.draws, path.prior_mass, discovered=True)

    def follow(self, given: SiteRows, rows: int = 1, *, complete: bool = False) -> tuple[KnownPath, BatchRun]:
        """Run the program for some rows of given values, and see the path of the first."""
        self._asked += 1
        frontend, seed, wanted = self.program.frontend, self._seed.child(self._asked), np.ones(rows, bool)
        runs = frontend.explore(self.program, seed, wanted, wishes=Wishes(given, complete))
        batch_run = next(iter(runs))
        self.runs += batch_run.runs
        known = self._paths.get(batch_run.path)
        if known is None:
            slp = frontend.replay(self.program, batch_run)
            draws = {name: values[batch_run.inside] for name, values in batch_run.values.items()}
            known = self._add(slp, draws, _known_mass(slp, draws), discovered=False)
        return known, batch_run

    def _add(
        self, slp: StraightLineProgram, draws: SiteRows, prior_mass: float, *, discovered: bool
    ) -> KnownPath:
        known = known_path(slp, draws, prior_mass, self._executables, discovered=discovered)
        self._paths[slp.recorded] = known
        return known


def _known_mass(slp: StraightLineProgram, draws: SiteRows) -> float:
    """The prior probability of a path, where all of it is known."""
    chances = [step.probability for step in steps(slp, draws)]
    return float(np.prod([0.0 if chance is None else chance for chance in chances]))
