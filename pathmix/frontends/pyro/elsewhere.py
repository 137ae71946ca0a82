"""Runs by workers, where they take long. Whatever cannot travel, or does not come back, is run here.

A run depends on its seed and on nothing else, so it is the same wherever it is made.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
import pyro

from pathmix.engine.precision import Precision, precision_scope
from pathmix.errors import PathmixError
from pathmix.frontends.pyro.record import record
from pathmix.frontends.pyro.run import Run
from pathmix.frontends.pyro.scope import frontend_scope
from pathmix.program.program import Program
from pathmix.program.wishes import OutsideSupport, Wishes

_TRIED = 8  # runs, after which it is known how long they take
_PAYS = 10.0  # seconds that those left would take: a worker needs some to load PyTorch

Item = tuple[int, Wishes]  # the seed of a run, and what it shall do


@dataclass(frozen=True)
class Runs:
    """What a worker needs to make runs of a program."""

    program: Program
    store: Any  # the state of Pyro's parameter store
    precision: Precision

    def __call__(self, items: Sequence[Item]) -> list[Run | None]:
        pyro.get_param_store().set_state(self.store)
        with precision_scope(self.precision), frontend_scope():
            return [self._made(word, wishes) for word, wishes in items]

    def _made(self, word: int, wishes: Wishes) -> Run | None:
        try:
            run = record(self.program, word, wishes)
        except (PathmixError, OutsideSupport):  # told by the run that is made in its place
            return None
        return run if isinstance(run, Run) else None


class Ahead:
    """Runs of a batch that workers make, once it has been seen that this pays."""

    def __init__(self, program: Program) -> None:
        self._program, self._seconds, self._count = program, 0.0, 0
        self._has_asked = False
        self._made: dict[int, Run] = {}  # by the position of the seed

    def took(self, seconds: float) -> None:
        """A run that was made here."""
        self._seconds, self._count = self._seconds + seconds, self._count + 1

    def pays(self, left: int) -> bool:
        """Whether so many runs shall be made elsewhere. Those that come back are not asked for again."""
        if self._program.helpers is None or self._has_asked or self._count < _TRIED:
            return False
        return self._seconds / self._count * left > _PAYS

    def ask(self, items: dict[int, Item], program: Program) -> None:
        """Have runs made, within the limits of `program`."""
        assert program.helpers is not None
        self._has_asked = True
        alone = replace(program, helpers=None, split={}, deciding={}, always_deciding={})
        precision = "float64" if jnp.result_type(float) == jnp.float64 else "float32"
        task = Runs(alone, pyro.get_param_store().get_state(), precision)
        for position, run in zip(items, program.helpers(task, list(items.values())), strict=True):
            if run is not None:
                self._made[position] = run

    def run(self, position: int) -> Run | None:
        return self._made.pop(position, None)
