"""A run of a program under tracing: its jaxpr, and what was gathered along it."""

from typing import Any

from pathmix.doors.jax import ClosedJaxpr
from pathmix.frontends.numpyro.density import Density
from pathmix.frontends.numpyro.hidden import HiddenKeys
from pathmix.frontends.numpyro.parameters import Parameters
from pathmix.program.path import Decision
from pathmix.program.program import Program
from pathmix.program.slp import Plate, Settled


class TracedRun:
    """The density along a path, where it `is_kept`.

    A density that cannot be had (a bijection that is not known, say) is an error of the path's straight-line
    program, not of the run, which may still fail by itself or be left out.
    """

    def __init__(self, program: Program, *, is_kept: bool) -> None:
        self.is_kept = is_kept
        self.parameters = Parameters(program)
        self.hidden = HiddenKeys()
        self.plates: tuple[Plate, ...] = ()  # that the program subsamples
        self.error: Exception | None = None
        self.jaxpr: ClosedJaxpr | None = None
        self.settled: Settled | None = None

    def begin(self, token: Any) -> None:
        self.density = Density()
        self.parameters.begin(token)
        self.hidden.begin(token)

    def note_plate(self, msg: Any) -> None:
        if msg["type"] == "plate" and msg["value"] is None:
            plate = Plate(msg["name"], *msg["args"])
            self.plates = self.plates if plate in self.plates else (*self.plates, plate)

    def decide(self, tracer: Any, decision: Decision, sites: int) -> None:
        self.density.decide(tracer, decision, sites)

    def add(self, msg: Any) -> None:
        """A statement that has its value."""
        self.parameters.note(msg)
        if self.is_kept and self.error is None:
            try:
                self.density.add(msg)
            except Exception as error:
                self.error = error

    def outputs(self, summed: tuple[str, ...]) -> list[Any]:
        """All that is known at the end, where these sites are to be summed out."""
        self.density.summed = summed
        if not self.is_kept or self.error is not None:
            return []
        try:
            outputs = self.density.outputs()
        except Exception as error:
            self.error = error
            return []
        self.hidden.check(outputs)
        return outputs
