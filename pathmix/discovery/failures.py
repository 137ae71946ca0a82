"""Prior runs that the program ends with an error, or does not end, are counted, told of, and left out."""

from dataclasses import dataclass

import numpy as np

from pathmix.errors import RunawayProgramError
from pathmix.program.failures import FailedRun
from pathmix.program.seeds import Seed
from pathmix.warn import warn

_IN_VAIN = 100  # runs, with none that ended: there is probably none
_IN_VAIN_SITES = 20_000  # that they drew


@dataclass
class _Place:
    """Where and how the program failed, in which run first, in how many, and what following them took."""

    run: FailedRun
    first: int
    count: int = 0
    times: int = 0
    sites: int = 0

    @property
    def is_endless(self) -> bool:
        return isinstance(self.run.error, RunawayProgramError)


class Failures:
    """All such runs so far, by the place in the program."""

    def __init__(self, seed: Seed) -> None:
        self._seed = seed
        self._places: dict[tuple[str, str], _Place] = {}

    @property
    def count(self) -> int:
        """Of runs that ended with an error."""
        return sum(place.count for place in self._places.values() if not place.is_endless)

    @property
    def endless(self) -> int:
        """How many runs were given up."""
        return sum(place.count for place in self._places.values() if place.is_endless)

    def add(self, run: FailedRun, numbers: np.ndarray, *, ended: int) -> None:
        """Some more, after so many runs that ended; an error if there are only endless ones."""
        error = run.error
        where = error.given_up if isinstance(error, RunawayProgramError) else str(run.source)
        key = (type(error).__name__, where)
        place = self._places.setdefault(key, _Place(run, int(numbers[0])))
        place.count += len(numbers)
        place.times += 1
        place.sites += run.sites
        place.first = min(place.first, int(numbers[0]))
        in_vain = place.times >= _IN_VAIN or place.sites >= _IN_VAIN_SITES
        if place.is_endless and not ended and in_vain:
            raise error

    def tell(self, samples: int) -> None:
        """Warn of each place; if no run got through, raise the first error."""
        places = sorted(self._places.values(), key=lambda place: place.first)
        if self.count + self.endless == samples:
            run = places[0].run
            if not places[0].is_endless:
                run.error.add_note(
                    f"pathmix: the program raised this at {run.source}{run.after}; "
                    f"all {samples:,} prior runs ended with an error."
                )
            raise run.error
        for place in places:
            first = f"first in run {place.first} of seed {self._seed}"
            if isinstance(place.run.error, RunawayProgramError):
                warn(
                    f"{place.count / samples:.1%} of the prior runs {place.run.error.given_up} ({first}, at "
                    f"{place.run.source}{place.run.after}). Their paths are left out; a larger max_sites or "
                    "max_seconds of the discovery lets them go on."
                )
            else:
                warn(
                    f"The program raised {place.run} in {place.count:,} of {samples:,} prior runs ({first}). "
                    "The posterior leaves such runs out: it is that of the prior restricted to runs that do "
                    "not fail."
                )
