"""Replays that repeat: a program traced twice along one path must give the same density.

Random numbers from elsewhere (Python, NumPy), clocks and state kept between calls would be frozen into the
density. Every place in the program where it can go another way is tried once: paths that take no new turn
at any place run no new code. Of a number that is looked at, so many values are tried and no more.

What two runs draw may be the same. So where a run takes random numbers of Python or NumPy, it is made many
times, and if none shows a difference, that is said.
"""

import pickle
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pathmix.doors.numpy import seeds_taken
from pathmix.errors import HiddenRandomnessError
from pathmix.program.batch_run import BatchRun
from pathmix.program.program import Program
from pathmix.program.reachable import reachable
from pathmix.program.slp import StraightLineProgram

_MOST_VALUES = 32
_MANY = 20  # runs
_GENERATORS = (np.random.Generator, np.random.RandomState, random.Random)


class Replays:
    """Replays paths of a program, twice where they take a turn that no path before took."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._turns: set[Any] = set()
        self._values = Counter[Any]()  # so many different ones were tried at each place
        self._generators = [one for one in reachable(program.model) if isinstance(one, _GENERATORS)]

    def replay(self, batch_run: BatchRun) -> StraightLineProgram:
        frontend, program = self.program.frontend, self.program
        slp = frontend.replay(program, batch_run)
        turns = {
            (source, decision.value)
            for source, decision in zip(slp.sources, slp.path.decisions, strict=True)
            if self._values[source] < _MOST_VALUES
        }
        turns |= {(site.source, None) for site in slp.sites}
        if self._turns and turns <= self._turns:
            return slp
        self._values.update(source for source, _ in turns - self._turns)
        self._turns |= turns
        for _ in range(_MANY):
            before = _states(self._generators)
            with seeds_taken() as seeds:
                repeats = frontend.repeats(program, batch_run, slp)
            if not repeats:
                raise HiddenRandomnessError(
                    f"its density{_at_end(slp)} has other numbers in it another time, at the same values"
                )
            if not seeds and _states(self._generators) == before:  # as it is where a program seeds them
                return slp
        remark = (
            "The program takes random numbers of Python or NumPy, which belong to no site. In "
            f"{_MANY + 1} runs at the same values that made no difference; what it makes is left out."
        )
        return replace(slp, facts=replace(slp.facts, remarks=(*slp.facts.remarks, remark)))


def _states(own: Sequence[Any]) -> bytes:
    """Where generators stand: those that all share, and the program's own."""
    return pickle.dumps((random.getstate(), np.random.get_state(), *map(_state, own)))


def _state(generator: Any) -> Any:
    match generator:
        case np.random.Generator():
            return generator.bit_generator.state
        case np.random.RandomState():
            return generator.get_state()
        case random.SystemRandom():  # it stands nowhere, and never where it stood
            return generator.random()
        case _:
            return generator.getstate()


def _at_end(slp: StraightLineProgram) -> str:
    if not slp.sites:
        return ""
    return f" on the path that ends with the site {slp.sites[-1].name!r} at {slp.sites[-1].source}"
