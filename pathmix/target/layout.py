"""Layout: which part of the flat vector belongs to which site."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from pathmix.target.coordinates import Coordinates

Bound = float | tuple[float, ...]  # of all elements, or of each


@dataclass(frozen=True)
class SiteSlice:
    """Where a free site stands in the vector: at `start` up to, and without, `stop`."""

    name: str
    start: int
    stop: int
    shape: tuple[int, ...]  # of its value in the program
    bounds: tuple[Bound, Bound] | None  # of its support, where that is a known interval
    bijection: type | None  # NumPyro's transform from the vector to the support; None for a box

    def __len__(self) -> int:
        return self.stop - self.start


@dataclass(frozen=True)
class Layout:
    """The free sites of a path, in the order of the vector.

    Masked elements that never reach the density are not in the vector, so a slice may be shorter than its
    site.
    """

    sites: tuple[SiteSlice, ...]

    @property
    def dim(self) -> int:
        """The length of the vector."""
        return self.sites[-1].stop if self.sites else 0

    @property
    def owners(self) -> tuple[int, ...]:
        """For each coordinate, the number of its site."""
        return tuple(number for number, site in enumerate(self.sites) for _ in range(len(site)))


def layout_of(coordinates: Coordinates) -> Layout:
    """The layout of a path's vector."""
    slices = iter(coordinates.slices)
    found = []
    for segment in coordinates.segments:
        bijection = None if segment.treedef is None else segment.treedef.node_data()[0]
        for index in segment.sites:
            site = coordinates.sites[index]
            bounds = None if site.bounds is None else (_bound(site.bounds[0]), _bound(site.bounds[1]))
            found.append(SiteSlice(site.name, *next(slices), site.shape, bounds, bijection))
    return Layout(tuple(found))


def _bound(values: Any) -> Bound:
    flat = np.ravel(np.asarray(values, float))
    return float(flat[0]) if np.all(flat == flat[:1]) else tuple(flat.tolist())
