"""A trained guide as a component of the posterior."""

from dataclasses import dataclass

import numpy as np

from pathmix.errors import RejectionError
from pathmix.program.seeds import Seed
from pathmix.program.slp import StraightLineProgram
from pathmix.program.values import SiteRows, SiteValues
from pathmix.target.inert import Inert
from pathmix.training.fit import PathFit


@dataclass(frozen=True, eq=False)
class TruncatedGuide:
    """A trained guide, restricted to the path's region by rejection."""

    fit: PathFit
    label: str

    @property
    def slp(self) -> StraightLineProgram:
        return self.fit.target.slp

    @property
    def inert(self) -> Inert:
        return self.fit.target.inert

    @property
    def acceptance(self) -> float:
        return 0.0 if self.fit.estimate is None else self.fit.estimate.acceptance

    def draw(self, seed: Seed, count: int) -> SiteRows:
        """By rejection, with a bounded number of tries."""
        wanted = int(np.ceil(count / self.acceptance * 1.1)) if self.acceptance < 1 else count
        tries = self.fit.options.rejection_tries
        parts: list[SiteRows] = []
        found = 0
        for attempt in range(tries):
            values, inside = self.fit.draw(seed.child(attempt), wanted)
            parts.append({name: array[inside] for name, array in values.items()})
            found += int(inside.sum())
            if found >= count:
                return {n: np.concatenate([part[n] for part in parts])[:count] for n in parts[0]}
        raise RejectionError(
            f"The path {self.label!r} gave only {found} of {count} draws inside its region in "
            f"{tries * wanted} tries. Train it longer, or with more particles."
        )

    def log_prob(self, values: SiteValues) -> float:
        return self.fit.log_prob(values) - float(np.log(self.acceptance))
