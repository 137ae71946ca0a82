"""What a posterior holds of one path: a way to draw from it, and its density."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from pathmix.errors import RejectionError
from pathmix.inert import Inert
from pathmix.seeds import Seed
from pathmix.slp import StraightLineProgram
from pathmix.training.fit import PathFit

Values = dict[str, np.ndarray]


class Component(Protocol):
    """One path's share of a posterior. Draws and densities are those of the path alone, normalised."""

    @property
    def slp(self) -> StraightLineProgram: ...

    @property
    def inert(self) -> Inert:
        """Elements of sites whose drawn values mean nothing: they come from the prior."""
        ...

    def draw(self, seed: Seed, count: int) -> Values:
        """Latent and deterministic sites, draws along the first axis."""
        ...

    def log_prob(self, values: Values) -> float:
        """Log-density at one draw, in the coordinates of the program; NaN outside a site's support."""
        ...


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

    def draw(self, seed: Seed, count: int) -> Values:
        """By rejection, with a bounded number of tries."""
        wanted = int(np.ceil(count / self.acceptance * 1.1)) if self.acceptance < 1 else count
        tries = self.fit.options.rejection_tries
        parts: list[Values] = []
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

    def log_prob(self, values: Values) -> float:
        return self.fit.log_prob(values) - float(np.log(self.acceptance))


@dataclass(frozen=True, eq=False)
class WeightedDraws:
    """A finite set of weighted draws, with the density of the distribution that they stand for."""

    slp: StraightLineProgram
    values: Values
    weights: np.ndarray  # sum to one
    density: Callable[[Values], float]
    inert: Inert = field(default_factory=dict)

    def draw(self, seed: Seed, count: int) -> Values:
        rows = seed.generator().choice(len(self.weights), size=count, p=self.weights)
        return {name: array[rows] for name, array in self.values.items()}

    def log_prob(self, values: Values) -> float:
        return self.density(values)
