"""The sites of one run so far, and the limits on it."""

from pathmix.errors import DuplicateSiteError, ProgramError, RunawayProgramError
from pathmix.frontends.owntime import OwnTime
from pathmix.program.program import MOST_SITES, Limits
from pathmix.program.source import Place, Source, calling_place


class SiteLog:
    """Knows where each site was drawn; complains of names drawn twice, and of runs without end."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.places: dict[str, Place] = {}
        self.own_time = OwnTime()

    def __len__(self) -> int:
        return len(self.places)

    def add(self, name: str, *, is_random: bool) -> None:
        """Note a site; `is_random` says that its name was made from a random value."""
        place = calling_place()
        if is_random:
            raise ProgramError(
                f"The site name {name!r} at {place.source()} is built from a random value. "
                "Turn the value into a number first: f'x_{int(k)}'."
            )
        if name in self.places:
            raise DuplicateSiteError(
                f"Two sites are called {name!r}: one at {self.places[name].source()}, one at "
                f"{place.source()}. Give each site of a run its own name, for example with a loop counter: "
                "f'x_{i}'."
            )
        self.places[name] = place

    def check_limits(self) -> None:
        most = MOST_SITES if self.limits.max_sites is None else self.limits.max_sites
        if len(self) > most:
            raise RunawayProgramError(
                f"One run drew more than max_sites={most} sites{self._last()}. "
                "Does the program end? If so, raise max_sites in the discovery.",
                f"did not end within {most:,} sites",
            )
        if self.own_time.exceeds(self.limits.max_seconds):
            elapsed = self.own_time.seconds()
            raise RunawayProgramError(
                f"One run took longer than max_seconds={self.limits.max_seconds:g}: {elapsed:.1f} s of "
                f"processor time, without compilation, and {len(self)} sites so far{self._last()}. "
                "Does the program end? If so, raise max_seconds in the discovery.",
                f"did not end within {self.limits.max_seconds:g} s of their own",
            )

    def too_deep(self, error: RecursionError) -> RunawayProgramError:
        told = RunawayProgramError(
            f"The program recursed too deeply after {len(self)} sites{self._last()}. "
            "Make deep recursion improbable under the prior, or bound it.",
            "did not end before Python's limit on recursion",
        )
        told.__cause__ = error
        return told.with_traceback(error.__traceback__)

    @property
    def last(self) -> str | None:
        """The last site so far."""
        return next(reversed(self.places), None)

    def sources(self) -> dict[str, Source]:
        return {name: place.source() for name, place in self.places.items()}

    def _last(self) -> str:
        if not self.places:
            return ""
        name, place = list(self.places.items())[-1]
        return f" (the last one is {name!r} at {place.source()})"
