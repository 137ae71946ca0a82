"""What paths can take over from each other: values that one found for sites that another has too."""

from collections.abc import Sequence

import numpy as np

from pathmix.program.values import SiteValues
from pathmix.training.fit import PathFit

_LATEST = 50  # steps by which fits are compared


class Donors:
    """The fits of a moment, as lenders of starting points."""

    def __init__(self, fits: Sequence[PathFit]) -> None:
        levels = {fit: fit.start.level(_LATEST) for fit in fits if fit.start is not None and fit.steps}
        ranked = sorted((fit for fit in levels if np.isfinite(levels[fit])), key=lambda fit: -levels[fit])
        # Where they stand now: they go on training while others borrow from them.
        self._best_first = [(fit, _keys(fit), fit.params) for fit in ranked]

    def of(self, fit: PathFit, count: int) -> list[SiteValues]:
        """What the best paths that share sites with this one found for them, from at most `count` paths.

        Paths that have a site which no better one has come first.
        """
        mine = _keys(fit)
        first, later, missing = [], [], set(mine)
        for lender, keys, params in self._best_first:
            shared = keys & mine
            if lender is not fit and shared:
                (first if shared & missing else later).append((lender, shared, params))
                missing -= shared
        return [
            {name: value for name, value in lender.location(params).items() if (name, value.shape) in shared}
            for lender, shared, params in [*first, *later][:count]
        ]


def _keys(fit: PathFit) -> set[tuple[str, tuple[int, ...]]]:
    return {(site.name, site.shape) for site in fit.target.slp.free}
