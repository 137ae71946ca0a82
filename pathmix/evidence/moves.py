"""Other places where a posterior may be: with members of a family swapped, or signs turned round.

Clusters of unequal shares are no symmetry, yet each way to name them is a mode, and searches that start near
one another end at the same one. Draws are carried over there, and the density says what was missed.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, islice

import numpy as np

from pathmix.evidence.orders import Group
from pathmix.evidence.symmetry import swapped_in, swaps
from pathmix.program.slp import Site
from pathmix.target.target import Target

_MOST_SWAPS = 48
_MOST_FLIPS = 16

Columns = list[np.ndarray]
Move = Callable[[Columns], Columns]


def moves(target: Target, groups: Sequence[Group]) -> list[Move]:
    """Maps of the free sites onto themselves that are no symmetries of the path."""
    if not all(target.coordinates.kept):
        return []
    return [*islice(_swaps(target, groups), _MOST_SWAPS), *_flips(target)]


def _swaps(target: Target, groups: Sequence[Group]) -> Iterator[Move]:
    """Those in most families first: what belongs together moves together."""
    same = {(group.families, pair) for group in groups for pair in combinations(group.members, 2)}
    for together, pair in sorted(swaps(target), key=lambda swap: -len(swap[0])):
        if (together, pair) not in same:
            yield lambda columns, together=together, pair=pair: swapped_in(columns, together, *pair)


def _flips(target: Target) -> Iterator[Move]:
    """All signs, and those of each site."""
    real = [number for number, site in enumerate(target.sites) if _is_real(site)]
    if len(real) > 1:
        yield lambda columns: _flipped(columns, real)
    for number in real[:_MOST_FLIPS]:
        yield lambda columns, number=number: _flipped(columns, [number])


def _flipped(columns: Columns, sites: Sequence[int]) -> Columns:
    return [-rows if number in sites else rows for number, rows in enumerate(columns)]


def _is_real(site: Site) -> bool:
    return site.bounds is not None and bool(np.all(np.isinf(site.bounds[0]) & np.isinf(site.bounds[1])))
