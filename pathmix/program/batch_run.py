"""What one run of a program along one path saw, for a whole batch of seeds at once."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pathmix.program.path import Path
from pathmix.program.slp import BijectionTemplate, Prior, Site
from pathmix.program.source import Source


@dataclass(frozen=True)
class BatchRun:
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
    observed: dict[str, np.ndarray]  # observed and deterministic sites, where asked for
    runs: int  # runs of the program that this took
    invalid: dict[str, np.ndarray]  # runs in which a parameter was outside of its constraint, by what to say
    trace: Any = None  # of the run, where its front end has it; from this comes the straight-line program
    continuous: tuple[bool, ...] = ()  # of the numbers that Python asked for: which stay arrays
    summed: Any = None  # that program, where it had to be made to see whether sites are summed out

    def spread(self, rows: np.ndarray, size: int) -> "BatchRun":
        """The same run in a larger batch, of which these rows took part; the others have no values."""

        def among(values: np.ndarray) -> np.ndarray:
            spread = np.zeros((size, *values.shape[1:]), values.dtype)
            spread[rows] = values
            return spread

        return replace(
            self,
            values={name: among(values) for name, values in self.values.items()},
            observed={name: among(values) for name, values in self.observed.items()},
            followed=among(self.followed),
            inside=among(self.inside),
            invalid={said: among(runs) for said, runs in self.invalid.items()},
        )

    @property
    def known(self) -> list[np.ndarray | None]:
        """The values of pinned sites, in the order of all sites."""
        pinned = dict(self.path.pinned)
        return [
            np.asarray(pinned[name], dtype=values.dtype) if name in pinned else None
            for name, values in self.values.items()
        ]

    def site(
        self,
        name: str,
        bijection: BijectionTemplate | None,
        bounds: tuple[Any, Any] | None,
        bounds_here: tuple[Any, Any] | None,
        prior: Prior | None,
        never: frozenset[int] = frozenset(),
    ) -> Site:
        """What is known of a latent site, together with what its support and its prior say."""
        values, pinned = self.values[name], dict(self.path.pinned)
        return Site(
            name=name,
            shape=values.shape[1:],
            dtype=values.dtype,
            source=self.site_sources.get(name, Source("<unknown>", 0, "")),
            pinned=np.asarray(pinned[name], dtype=values.dtype) if name in pinned else None,
            bijection=bijection,
            bounds=bounds,
            bounds_here=bounds_here,
            prior=prior,
            never=never,
            is_summed=name in self.path.summed,
        )
