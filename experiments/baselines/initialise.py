"""Where the distributions of addresses start: at the prior, pooled over the paths that have them."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from experiments.baselines.address_guide import AddressGuide
from experiments.baselines.addresses import Address, choices, discrete_address, stretches
from experiments.baselines.known_path import KnownPath
from pathmix.program.slp import Site
from pathmix.program.values import SiteRows


class PriorDraws(NamedTuple):
    """Draws of all latent sites of a path, which together stand for so many runs."""

    known: KnownPath
    values: SiteRows
    rows: int
    runs: float


class _Pooled(NamedTuple):
    rows: np.ndarray  # one draw each
    weights: np.ndarray


def add_addresses(guide: AddressGuide, paths: Sequence[PriorDraws], cap: int) -> None:
    """Add the addresses of some paths that the guide does not have yet."""
    continuous: dict[Address, list[_Pooled]] = {}
    discrete: dict[Address, list[_Pooled]] = {}
    sites: dict[Address, Site] = {}
    for known, values, rows, runs in paths:
        weights = np.full(rows, runs / rows)
        for site in known.slp.sites:
            if site.pinned is not None and (address := discrete_address(site)) not in guide:
                sites[address] = site
                drawn = np.asarray(values[site.name]).reshape(rows, *site.shape)
                discrete.setdefault(address, []).append(_Pooled(drawn, weights))
        new = [stretch for stretch in stretches(known.target) if stretch.address not in guide]
        u = known.unconstrain(values, rows)[0] if new else np.zeros((rows, 0))
        for _, address, start, stop in new:
            continuous.setdefault(address, []).append(_Pooled(u[:, start:stop], weights))
    for address, parts in continuous.items():
        guide.add_normal(address, *_moments(_together(parts)))
    for address, parts in discrete.items():
        _add_categorical(guide, address, sites[address], _together(parts), cap)


def _add_categorical(guide: AddressGuide, address: Address, site: Site, drawn: _Pooled, cap: int) -> None:
    """Prior frequencies, with one more run for every choice: none may start at zero."""
    found = choices(site, drawn.rows, cap)
    masses = np.ones((len(found.number), int(found.number.max(initial=1))))
    index = drawn.rows.reshape(len(drawn.rows), -1).astype(np.int64) - found.lowest
    for row, weight in zip(index, drawn.weights, strict=True):
        covered = np.flatnonzero((row >= 0) & (row < found.number))
        masses[covered, row[covered]] += weight
    guide.add_categorical(address, found, masses)


def _moments(drawn: _Pooled) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of the usable rows; unit scale where they cannot tell one."""
    usable = np.all(np.isfinite(drawn.rows), axis=1) & (drawn.weights > 0)
    if not np.any(usable):
        return np.zeros(drawn.rows.shape[1]), np.ones(drawn.rows.shape[1])
    rows, weights = drawn.rows[usable], drawn.weights[usable]
    loc = np.average(rows, axis=0, weights=weights)
    scale = np.sqrt(np.average((rows - loc) ** 2, axis=0, weights=weights))
    return loc, np.where(scale > 0, scale, 1.0)


def _together(parts: Iterable[_Pooled]) -> _Pooled:
    return _Pooled(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
