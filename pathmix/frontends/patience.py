"""How many sites a run may draw, if nobody says: ten times as many as those that end first, on average.

With a heavy tail, most of the work would go to a few runs that are endless or might as well be.
"""

from dataclasses import replace

from pathmix.errors import RunawayProgramError
from pathmix.program.failures import FailedRun, OnFailure
from pathmix.program.program import MOST_SITES, Limits

_SHORT = 300  # sites
_TIMES = 10  # as many as on average
_NONE_ENDED = 3  # runs, after which short ones are not waited for


class Patience:
    """The limits on the runs of a batch, and those that wait until others have ended."""

    def __init__(self, limits: Limits, on_failure: OnFailure | None) -> None:
        # Where a run that is given up is an error, none is given up early.
        self._is_final = limits.max_sites is not None or on_failure is None
        self.limits = limits if self._is_final else replace(limits, max_sites=_SHORT)
        self._sites = self.runs = 0  # of those that ended
        self._waiting: list[FailedRun] = []

    def ended(self, sites: int, runs: int) -> None:
        """So many runs drew so many sites each."""
        self._sites += runs * sites
        self.runs += runs

    def puts_off(self, run: FailedRun) -> bool:
        """Whether there may be more sites for it later, which it came to an end for the lack of."""
        waits = not self._is_final and isinstance(run.error, RunawayProgramError) and not self.has_room(run)
        if waits:
            self._waiting.append(run)
        return waits

    def again(self, *, is_last: bool) -> list[FailedRun]:
        """Those that wait, with other limits: after the last one, or when there seem to be no short ones."""
        if not self._waiting or not (is_last or (not self.runs and len(self._waiting) == _NONE_ENDED)):
            return []
        average = self._sites / self.runs if self.runs else MOST_SITES
        sites = min(max(_SHORT, round(_TIMES * average)), MOST_SITES)
        self.limits, self._is_final = replace(self.limits, max_sites=sites), True
        return self.withdrawn()

    def has_room(self, run: FailedRun) -> bool:
        """Whether it may draw more sites than it did."""
        return self.limits.max_sites is None or run.sites <= self.limits.max_sites

    def withdrawn(self) -> list[FailedRun]:
        """Those that wait no more."""
        waiting, self._waiting = self._waiting, []
        return waiting
