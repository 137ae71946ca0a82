"""What a guide that keeps the program's control flow has a distribution for: addresses.

A name stands for one address as long as its site has one shape and one kind of support. Where these
depend on the path, each combination is an address of its own.
"""

from typing import Any, NamedTuple

import numpy as np

from pathmix.program.slp import Site
from pathmix.target.target import Target


class Address(NamedTuple):
    name: str
    shape: tuple[int, ...]  # of the unconstrained value, for continuous sites
    kind: str  # of the support


class Stretch(NamedTuple):
    """Where a continuous site is in the unconstrained vector of its path."""

    site: Site
    address: Address
    start: int
    stop: int


def stretches(target: Target) -> list[Stretch]:
    """The continuous sites of a path, in the order of its unconstrained vector."""
    found = []
    for block in target.coordinates.segments:
        start = block.start
        for index in block.sites:
            site = target.sites[index]
            assert site.bijection is not None
            shape = site.shape if block.elementwise else block.shape
            stop = start + int(np.prod(shape, dtype=int))
            # The bijection's parameters may depend on the path; the guide's distribution does not.
            address = Address(site.name, shape, str(site.bijection.treedef))
            found.append(Stretch(site, address, start, stop))
            start = stop
    return found


def discrete_address(site: Site) -> Address:
    """The bounds tell supports apart; unknown ones (None) depend on other sites."""
    bounds = None if site.bounds is None else tuple(_listed(bound) for bound in site.bounds)
    return Address(site.name, site.shape, f"discrete {bounds}")


class Choices(NamedTuple):
    """The whole numbers that the elements of a discrete site can take: so many, from the lowest on."""

    lowest: np.ndarray
    number: np.ndarray


def choices(site: Site, drawn: np.ndarray, cap: int) -> Choices:
    """All values of a finite support, and `cap` of another; `drawn` has prior draws, one per row.

    An infinite support is covered from its lower end, or around the median of the draws.
    """
    flat = drawn.reshape(len(drawn), -1).astype(float)
    if site.bounds is None:
        lower, upper = np.minimum(flat.min(axis=0), 0), np.full(flat.shape[1], np.inf)
    else:
        lower, upper = (np.broadcast_to(bound, site.shape).astype(float).ravel() for bound in site.bounds)
    open_below = np.where(np.isfinite(upper), upper - cap + 1, np.floor(np.median(flat, axis=0)) - cap // 2)
    lowest = np.where(np.isfinite(lower), lower, open_below)
    finite = np.isfinite(lower) & np.isfinite(upper)
    number = np.where(finite, upper - lower + 1, cap)
    return Choices(lowest.astype(np.int64), number.astype(np.int64))


def _listed(bound: Any) -> Any:
    return np.asarray(bound, float).tolist()
