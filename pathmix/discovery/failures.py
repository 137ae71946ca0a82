"""Prior runs that the program ends with an error are counted, told of, and left out."""

from dataclasses import dataclass

import numpy as np

from pathmix.program.failures import FailedRun
from pathmix.program.seeds import Seed
from pathmix.warn import warn


@dataclass
class _Place:
    """Where and how the program failed, how often, and in which run first."""

    run: FailedRun
    count: int
    first: int


class Failures:
    """All failed runs so far, by the place in the program."""

    def __init__(self, seed: Seed) -> None:
        self._seed = seed
        self._places: dict[tuple[str, str], _Place] = {}

    @property
    def count(self) -> int:
        return sum(place.count for place in self._places.values())

    def add(self, run: FailedRun, numbers: np.ndarray) -> None:
        key = (type(run.error).__name__, str(run.source))
        place = self._places.setdefault(key, _Place(run, 0, int(numbers[0])))
        place.count += len(numbers)
        place.first = min(place.first, int(numbers[0]))

    def tell(self, samples: int) -> None:
        """Warn of each place; if no run got through, raise the first error."""
        places = sorted(self._places.values(), key=lambda place: place.first)
        if self.count == samples:
            run = places[0].run
            run.error.add_note(
                f"pathmix: the program raised this at {run.source}{run.after}; "
                f"all {samples:,} prior runs ended with an error."
            )
            raise run.error
        for place in places:
            warn(
                f"The program raised {place.run} in {place.count:,} of {samples:,} prior runs (first in run "
                f"{place.first} of seed {self._seed}). The posterior leaves such runs out: it is that of the "
                "prior restricted to runs that do not fail."
            )
