"""What is known of the prior: draws on a path, and draws of its sites on all paths together."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pathmix.discovery.contenders import Contender
from pathmix.guides.base import moments
from pathmix.program.values import SiteRows
from pathmix.training.fit import PathFit

Pool = dict[tuple[str, tuple[int, ...]], np.ndarray]  # by name and shape of the site

_ROWS = 1_024


def pool(paths: Sequence[Contender[PathFit]]) -> Pool:
    """The draws of each site over all paths that have it."""
    parts: dict[tuple[str, tuple[int, ...]], list[np.ndarray]] = {}
    for path in paths:
        for name, values in path.draws.items():
            parts.setdefault((name, values.shape[1:]), []).append(values[: path.followers or None])
    return {key: _some(np.concatenate(arrays)) for key, arrays in parts.items()}


@dataclass(frozen=True, eq=False)
class Prior:
    """Of one path."""

    fit: PathFit
    draws: SiteRows
    pool: Pool

    @cached_property
    def mean(self) -> np.ndarray:
        """The prior's mean in unconstrained coordinates.

        A rare path has few draws of its own, and a mean over few is far off in many dimensions. Where the
        pool's values are outside of what a path allows, its own draws must do.
        """
        fit, own = self.fit, moments(self.fit.vectors)[0]
        rows = np.arange(_ROWS)
        values = {}
        for site in fit.target.sites:
            known = self.pool[site.name, site.shape]
            values[site.name] = known[rows % len(known)]
        pooled = fit.unconstrained(values)
        return np.where(np.all(np.isfinite(pooled), axis=0), pooled.mean(axis=0), own)


def _some(rows: np.ndarray) -> np.ndarray:
    """Not more than are needed, of all paths."""
    return rows[np.linspace(0, len(rows) - 1, min(len(rows), _ROWS)).astype(int)]
