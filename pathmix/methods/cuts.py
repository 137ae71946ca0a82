"""Whether the posterior goes on where the values of sites without an upper end were cut."""

from collections.abc import Sequence

import numpy as np

from pathmix.methods.combine import Judged
from pathmix.program.seeds import Seed
from pathmix.summation.beyond import lacking

_DRAWS = 64
_LITTLE = 1e-3  # a weight, and a share of the evidence


def cut_flaws(judged: Sequence[Judged], seed: Seed) -> list[str]:
    """Why weights cannot be right, whatever their errors."""
    reached: dict[str, int] = {}
    for number, one in enumerate(judged):
        summation = one.contender.slp.summation
        if summation is None or not summation.cut or one.fitted.weight < _LITTLE:
            continue
        draws = one.component.draw(seed.child(number), _DRAWS)
        rows = [np.asarray(draws[site.name], site.dtype) for site in one.contender.slp.sites]
        for site in summation.plan.sites:
            # At draws, the mean factor by which densities grow is that of the evidence.
            if site.name in summation.cut and (
                np.mean(lacking(summation.before, summation.plan, [site.name], rows)) > _LITTLE
            ):
                reached[site.name] = site.low + site.values - 1
    return [
        f"The values of {name!r} were summed up to {last}, beyond which prior draws showed nothing, and its "
        "posterior goes on there: evidences lack what is beyond. Give its rate a prior nearer to the "
        "data, or draw its elements one by one and make each a branch, with int(...)."
        for name, last in reached.items()
    ]
