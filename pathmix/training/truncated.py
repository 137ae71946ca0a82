"""A trained guide as a component of the posterior."""

from dataclasses import dataclass

import numpy as np

from pathmix.engine.executables import Executables
from pathmix.errors import RejectionError
from pathmix.guides.base import Guide, Params
from pathmix.program.seeds import Seed
from pathmix.program.slp import StraightLineProgram
from pathmix.program.values import SiteRows, SiteValues
from pathmix.target.inert import Inert
from pathmix.target.target import Target
from pathmix.training.drawing import draw, log_prob


@dataclass(frozen=True, eq=False)
class TruncatedGuide:
    """A trained guide, restricted to the path's region by rejection."""

    target: Target
    guide: Guide
    params: Params
    executables: Executables
    label: str
    acceptance: float
    weighed: bool  # some draws have zero density, and are rejected too
    tries: int

    @property
    def slp(self) -> StraightLineProgram:
        return self.target.slp

    @property
    def inert(self) -> Inert:
        return self.target.inert

    def draw(self, seed: Seed, count: int) -> SiteRows:
        """By rejection, with a bounded number of tries."""
        wanted = int(np.ceil(count / self.acceptance * 1.1)) if self.acceptance < 1 else count
        parts: list[SiteRows] = []
        found = 0
        for attempt in range(self.tries):
            values, inside = draw(
                self.executables,
                self.target,
                self.guide,
                self.params,
                seed.child(attempt),
                wanted,
                weighed=self.weighed,
            )
            parts.append({name: array[inside] for name, array in values.items()})
            found += int(inside.sum())
            if found >= count:
                return {n: np.concatenate([part[n] for part in parts])[:count] for n in parts[0]}
        raise RejectionError(
            f"The path {self.label!r} gave only {found} of {count} draws inside its region in "
            f"{self.tries * wanted} tries. Train it longer, or with more particles."
        )

    def log_prob(self, values: SiteValues) -> float:
        """In the coordinates of the program."""
        found = log_prob(self.executables, self.target, self.guide, self.params, values)
        return found - float(np.log(self.acceptance))
