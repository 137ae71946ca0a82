"""Whether the posterior comes near to where the values of sites without an upper end were cut."""

from collections.abc import Sequence

import numpy as np

from pathmix.methods.combine import Judged
from pathmix.program.seeds import Seed

_DRAWS = 256
_LITTLE = 1e-3  # a weight
_DEVIATIONS, _STEPS = 4.0, 1.0  # beyond the mean, that must be free


def cut_flaws(judged: Sequence[Judged], seed: Seed) -> list[str]:
    """Why weights cannot be right, whatever their errors."""
    reached: dict[str, int] = {}
    for number, one in enumerate(judged):
        summation = one.contender.slp.summation
        if summation is None or not summation.cut or one.fitted.weight < _LITTLE:
            continue
        draws = one.component.draw(seed.child(number), _DRAWS)
        for site in summation.plan.sites:
            if site.name in summation.cut:
                values, last = np.asarray(draws[site.name], float), site.low + site.values - 1
                edge = values.mean(axis=0) + _DEVIATIONS * values.std(axis=0) + _STEPS
                if np.any(edge > last):
                    reached[site.name] = last
    return [
        f"The values of {name!r} were summed up to {last}, beyond which prior draws showed nothing, and its "
        "posterior comes up to there: evidences lack what is beyond. Give its rate a prior nearer to the "
        "data, or draw its elements one by one and make each a branch, with int(...)."
        for name, last in reached.items()
    ]
