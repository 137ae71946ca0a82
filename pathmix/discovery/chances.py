"""How probable values of a discrete site are, after all that happened before, by the program's own density.

What others lack to one tells nothing of values that are less probable than rounding.
"""

import math
from collections.abc import Sequence

import numpy as np

from pathmix.program.path import PinnedValue
from pathmix.program.slp import StraightLineProgram
from pathmix.regions.expressions import expressions
from pathmix.regions.witnesses import truths

_ROWS = 256  # at once: one size for all sites, so that operations are compiled once


def chances(
    slp: StraightLineProgram, number: int, values: Sequence[PinnedValue]
) -> dict[PinnedValue, float] | None:
    """Of those that can be drawn at a site, however rarely; None where the path does not tell."""
    site = slp.sites[number]
    graph = slp.graph.outputs([dict(slp.drawn)[site.name]])
    (term,) = expressions(graph, [other.pinned for other in slp.sites])
    if term.free or number not in term.sites:
        return None
    columns = np.array(values, site.dtype).reshape(len(values), math.prod(site.shape))
    logs = np.zeros(0)
    for start in range(0, len(values), _ROWS):
        rows = columns[np.arange(start, start + _ROWS) % len(values)]
        logs = np.append(logs, truths(graph, slp.sites, {number: rows}))
    if np.any(np.isnan(logs)):
        return None
    least = np.finfo(float).tiny
    pairs = zip(values, np.maximum(np.exp(logs), least).tolist(), logs, strict=False)
    return {value: chance for value, chance, log in pairs if log > -np.inf}
