"""What an automatic guide of a library offers, whichever library it is."""

from collections.abc import Callable
from typing import Protocol

import numpy as np

from pathmix.errors import UnsupportedSiteError
from pathmix.program.seeds import Seed
from pathmix.program.values import SiteValues


class Automatic(Protocol):
    """A guide for a whole program, made and trained by the program's own library."""

    def train(
        self,
        seed: Seed,
        steps: int,
        particles: int,
        learning_rate: float,
        report: Callable[[int, float], None],
    ) -> np.ndarray:
        """Optimise; the ELBO estimate of every step. `report` is told of steps done and the ELBO there."""
        ...

    def draw(self, seed: Seed, count: int) -> tuple[list[SiteValues], np.ndarray]:
        """The latent sites of each draw, and log q in the coordinates of the program."""
        ...

    def log_q(self, values: SiteValues) -> float:
        """The same density at given values."""
        ...


def no_discrete_site(name: str, where: str) -> UnsupportedSiteError:
    return UnsupportedSiteError(
        f"The site {name!r} at {where} is discrete, and automatic guides only have continuous latent sites. "
        "Use SDVI or BBVI."
    )
