"""What one run of a program along one path saw, for a whole batch of seeds at once."""

from dataclasses import dataclass

import numpy as np

from pathmix.frontends.source import Source
from pathmix.path import Path


@dataclass(frozen=True)
class Execution:
    """The path of the leading seed, and how every other seed fared on it.

    Discrete sites are forced to the leader's values, so a seed that would have left the path at a
    discrete site still gives a draw near the path's prior (of it exactly, where the probability of
    the forced values does not depend on other sites).
    """

    path: Path
    sources: tuple[Source, ...]  # of the decisions
    site_sources: dict[str, Source]
    values: dict[str, np.ndarray]  # latent sites, seeds along the first axis
    followed: np.ndarray  # seeds that take this path by themselves
    inside: np.ndarray  # seeds whose forced run satisfies every decision
    observed: dict[str, np.ndarray]  # simulated observed sites, where asked for
    runs: int  # runs of the program that this took
