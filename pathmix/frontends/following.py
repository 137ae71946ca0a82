"""Following: a replayed run must draw the sites and take the decisions of the recorded one."""

from pathmix.errors import HiddenRandomnessError
from pathmix.program.path import Decision, DecisionKind, Path
from pathmix.program.source import caller


class Following:
    """How far along its path a run has come. Leaving it means that the program hides randomness."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.sites = 0
        self.decisions = 0

    def draw(self, name: str) -> None:
        if self.path.addresses[self.sites : self.sites + 1] != (name,):
            raise HiddenRandomnessError(f"this time it drew the site {name!r} at {caller()}")
        self.sites += 1

    def decide(self, kind: DecisionKind) -> Decision:
        """The decision that the recorded run took here."""
        for decision in self.path.decisions[self.decisions : self.decisions + 1]:
            if decision.kind == kind:
                self.decisions += 1
                return decision
        raise HiddenRandomnessError(f"this time it took another decision at {caller()}")

    def check_complete(self) -> None:
        for missing in self.path.addresses[self.sites :]:
            raise HiddenRandomnessError(f"this time it ended without drawing the site {missing!r}")
        if self.decisions != len(self.path.decisions):
            raise HiddenRandomnessError("this time it ended without taking the same decisions")
