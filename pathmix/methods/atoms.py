"""Whether prior draws of continuous sites repeat a value: then the prior has atoms, whatever its type."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pathmix.discovery.contenders import Contender
from pathmix.program.slp import Site

_DRAWS = 100
_ELEMENTS = 64  # of a site
_NEAR = 1e-6  # an end of the support, where draws are rounded to one number


def atom_flaws(contenders: Sequence[Contender[Any]]) -> list[str]:
    """Why weights cannot be right, whatever their errors."""
    repeated: dict[str, float] = {}
    for one in contenders:
        for site in one.slp.free:
            if site.name not in repeated:
                draws = one.draws[site.name][: min(one.followers, _DRAWS)]
                if len(draws) > 2 and (value := _repeated(site, draws)) is not None:
                    repeated[site.name] = value
    return [
        f"Prior draws of {name!r} repeat the value {value:g}. If its prior has an atom there, evidences lack "
        "the share of it, which no density has. Draw by a site of its own whether it has this value."
        for name, value in repeated.items()
    ]


def _repeated(site: Site, draws: np.ndarray) -> float | None:
    """A value inside the support that an element has three times, and not always."""
    ordered = np.sort(np.reshape(draws, (len(draws), -1))[:, :_ELEMENTS], 0)
    again = (ordered[2:] == ordered[:-2]) & (ordered[0] != ordered[-1])
    inside = np.isfinite(ordered[2:])
    # Without an interval it may be a simplex, whose ends are the same.
    for end in (0.0, 1.0) if site.bounds is None else site.bounds:
        ends = np.broadcast_to(np.asarray(end, float), site.shape).ravel()[:_ELEMENTS]
        inside &= np.abs(ordered[2:] - ends) > _NEAR
    found = ordered[2:][again & inside]
    return float(found[0]) if len(found) else None
