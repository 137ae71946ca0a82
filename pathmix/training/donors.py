"""What paths can take over from each other: values that one found for sites that another has too."""

from collections.abc import Sequence

from pathmix.discovery.kin import Kin
from pathmix.program.values import SiteValues
from pathmix.training.fit import PathFit

_LATEST = 50  # steps by which fits are compared
_MOST = 8  # paths that lend at a time


class Donors:
    """The fits of a moment, as lenders of starting points."""

    def __init__(self, fits: Sequence[PathFit], kin: Kin) -> None:
        self._kin = kin
        kin.learn(fit.target.slp for fit in fits)
        levels = {fit: fit.start.level(_LATEST) for fit in fits if fit.start is not None and fit.steps}
        ranked = sorted((fit for fit in levels if levels[fit] > -float("inf")), key=lambda fit: -levels[fit])
        # Where they stand now: they go on training while others borrow from them.
        self._best_first = [(fit, kin.roles(fit.target.slp), fit.params) for fit in ranked]
        self._places: dict[PathFit, SiteValues] = {}  # of those that were asked, for the next to ask

    def of(self, fit: PathFit) -> list[SiteValues]:
        """What some of the best paths that share sites with this one found for them.

        Paths that have a site which no better one has come first. Where a path has several sites that mean
        the same, any of them lends, another one each time.
        """
        mine = self._kin.roles(fit.target.slp)
        first, later, missing = [], [], set(mine)
        for lender, roles, params in self._best_first:
            if lender is not fit and (shared := roles & mine):
                (first if shared & missing else later).append((lender, params))
                missing -= shared
        slp, generator = fit.target.slp, fit.training_seed.child(fit.blocks, 4).generator()
        lent = []
        for lender, params in [*first, *later][:_MOST]:
            if lender not in self._places:
                self._places[lender] = lender.location(params)
            lent.append(self._kin.taken_over(self._places[lender], lender.target.slp, slp, generator))
        return lent
