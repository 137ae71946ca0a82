"""Replays that repeat: a program traced twice along one path must give the same density.

Random numbers from elsewhere (Python, NumPy), clocks and state kept between calls would be frozen into the
density. Every place in the program where it can go another way is tried once: paths that take no new turn
at any place run no new code. Of a number that is looked at, so many values are tried and no more.
"""

from collections import Counter
from typing import Any

from pathmix.errors import HiddenRandomnessError
from pathmix.program.batch_run import BatchRun
from pathmix.program.program import Program
from pathmix.program.slp import StraightLineProgram

_MOST_VALUES = 32


class Replays:
    """Replays paths of a program, twice where they take a turn that no path before took."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._turns: set[Any] = set()
        self._values = Counter[Any]()  # so many different ones were tried at each place

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
        if not frontend.repeats(program, batch_run, slp):
            raise HiddenRandomnessError(
                f"its density{_at_end(slp)} has other numbers in it the second time, at the same values"
            )
        return slp


def _at_end(slp: StraightLineProgram) -> str:
    if not slp.sites:
        return ""
    return f" on the path that ends with the site {slp.sites[-1].name!r} at {slp.sites[-1].source}"
