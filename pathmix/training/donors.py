"""What paths can take over from each other: values that one found for sites that another has too."""

from collections.abc import Sequence

import numpy as np

from pathmix.training.fit import PathFit

Values = dict[str, np.ndarray]


class Donors:
    """The fits of a moment, as lenders of starting points."""

    def __init__(self, fits: Sequence[PathFit]) -> None:
        trained = [fit for fit in fits if fit.steps and np.isfinite(fit.elbo)]
        # Where they stand now: they go on training while others borrow from them.
        self._lenders = [(fit, fit.location()) for fit in sorted(trained, key=lambda fit: -fit.elbo)]

    def of(self, fit: PathFit) -> list[Values]:
        """For each free site, the best other path that has one of this name and shape; best path first.

        Each lends all the sites that it shares with the path.
        """
        mine = _keys(fit)
        lent, missing = [], set(mine)
        for lender, location in self._lenders:
            shared = _keys(lender) & mine
            if lender is not fit and shared & missing:
                lent.append({name: location[name] for name, _ in shared})
                missing -= shared
        return lent


def _keys(fit: PathFit) -> set[tuple[str, tuple[int, ...]]]:
    return {(site.name, site.shape) for site in fit.target.slp.free}
