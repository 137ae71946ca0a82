"""What a posterior holds of one path: a way to draw from it, and its density."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from pathmix.program.seeds import Seed
from pathmix.program.slp import StraightLineProgram
from pathmix.program.values import SiteRows, SiteValues
from pathmix.target.inert import Inert


class Component(Protocol):
    """One path's share of a posterior. Draws and densities are those of the path alone, normalised."""

    @property
    def slp(self) -> StraightLineProgram: ...

    @property
    def inert(self) -> Inert:
        """Elements of sites whose drawn values mean nothing: they come from the prior."""
        ...

    def draw(self, seed: Seed, count: int) -> SiteRows:
        """Latent and deterministic sites, draws along the first axis."""
        ...

    def log_prob(self, values: SiteValues) -> float:
        """Log-density at one draw, in the coordinates of the program; NaN outside a site's support."""
        ...


@dataclass(frozen=True, eq=False)
class WeightedDraws:
    """A finite set of weighted draws, with the density of the distribution that they stand for."""

    slp: StraightLineProgram
    values: SiteRows
    weights: np.ndarray  # sum to one
    density: Callable[[SiteValues], float]
    inert: Inert = field(default_factory=dict)

    def draw(self, seed: Seed, count: int) -> SiteRows:
        rows = seed.generator().choice(len(self.weights), size=count, p=self.weights)
        return {name: array[rows] for name, array in self.values.items()}

    def log_prob(self, values: SiteValues) -> float:
        return self.density(values)
