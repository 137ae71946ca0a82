"""Exchangeable sites: groups of sites, or of blocks of sites, whose permutation changes no density.

Weight, mean and scale of one cluster are a block; K blocks have K! places in the posterior, of which a guide
holds one. Found without annotations: families of sites that look alike are swapped at prior draws, and the
density says whether it has noticed.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import combinations, pairwise

import numpy as np

from pathmix.engine.requests import Asking
from pathmix.evidence.orders import Family, Group, member_of
from pathmix.program.values import SiteRows
from pathmix.target.coordinates import kinds
from pathmix.target.target import Target
from pathmix.training.fit import PathFit

_ROWS = 16  # draws at which a swap is tried
_MOST_ROWS = 512  # among which those are sought
_NOTICEABLE = 1e-2  # nats: a density that is rounded to more tells nothing
_MOST_PAIRED = 8  # members, all of whose pairs are tried
_MOST_TOGETHER = 5  # families of one size, all of whose subsets are tried
_SEPARATED = 1.0  # standard deviations between members of a group, beyond which a guide has chosen an order

_NUMBER, _WORD = re.compile(r"\d+"), re.compile(r"[^\W\d_]+")

Swap = tuple[tuple[Family, ...], tuple[int, int]]  # two members, in all of the families


def exchangeable(fit: PathFit, draws: SiteRows) -> Asking[tuple[Group, ...]]:
    """The groups of a path."""
    target = fit.target
    candidates = swaps(target)
    if not candidates or not all(target.coordinates.kept):
        return ()
    columns = [column[:_MOST_ROWS] for column in target.columns(draws)]
    same = yield from _unnoticed(fit, columns, candidates)
    return tuple(_groups(candidates, same))


def confirmed(
    fit: PathFit, groups: Sequence[Group], columns: Sequence[np.ndarray], rows: int = _ROWS
) -> Asking[tuple[Group, ...]]:
    """The groups whose swaps the density does not notice at draws of the guide either.

    What is symmetric where prior draws are may not be where the posterior is: beyond a bound, or a hinge.
    """
    kept = []
    for group in groups:
        neighbours = [(group.families, pair) for pair in pairwise(group.members)]
        same = yield from _unnoticed(fit, [column[:_MOST_ROWS] for column in columns], neighbours, rows)
        kept += [group] if np.all(same) else []
    return tuple(kept)


def _unnoticed(
    fit: PathFit, columns: Sequence[np.ndarray], tried: Sequence[Swap], most: int = _ROWS
) -> Asking[np.ndarray]:
    """Which swaps of two members leave the densities of all rows as they are.

    Rows with huge densities are left out: rounding would hide what changes.
    """
    seen = yield from fit.densities(vectors_of(fit, columns))
    tolerance = (1e-9 if seen.log_joint.dtype == np.float64 else 1e-5) * (1 + np.abs(seen.log_joint))
    usable = np.flatnonzero(seen.inside & np.isfinite(seen.log_joint) & (tolerance < _NOTICEABLE))[:most]
    if len(usable) < 2:
        return np.zeros(len(tried), bool)
    rows = [column[usable] for column in columns]
    swapped = [swapped_in(rows, together, *pair) for together, pair in tried]
    stacked = [np.concatenate(column) for column in zip(*swapped, strict=True)]
    vectors = vectors_of(fit, stacked)
    after = yield from fit.densities(vectors)
    # Outside of a support or of a box a value has no vector, even if no density depends on it.
    there = np.asarray(after.inside) & np.all(np.isfinite(vectors), axis=1)
    density = np.where(there, after.log_joint, np.nan).reshape(len(tried), -1)
    return np.all(np.abs(density - seen.log_joint[usable]) <= tolerance[usable], axis=1)


def swaps(target: Target) -> list[Swap]:
    """Two members that look alike, in one or more families: all that may be swapped."""
    axes = [
        Family((number,), axis, length)
        for number, site in enumerate(target.sites)
        for axis, length in enumerate(site.shape)
        if length > 1
    ]
    together = [
        chosen
        for part in (_NUMBER, _WORD)  # clusters are numbered, or left and right; never both at once
        for chosen in _alike([*axes, *_named_alike(target, part)])
    ]
    return [(chosen, pair) for chosen in dict.fromkeys(together) for pair in _pairs(chosen[0].size)]


def _named_alike(target: Target, part: re.Pattern[str]) -> Iterable[Family]:
    """Sites of one kind whose names differ in one part only."""
    alike: dict[object, list[int]] = {}
    position = {site.name: place for place, site in enumerate(target.slp.sites)}
    kind = dict(zip(position, kinds(target.slp, target.region), strict=True))
    for number, site in enumerate(target.sites):
        for place in part.finditer(site.name):
            stem = f"{site.name[: place.start()]}#{site.name[place.end() :]}"
            alike.setdefault((stem, site.shape, str(site.dtype), kind[site.name]), []).append(number)
    for numbers in alike.values():
        if len(numbers) > 1:
            ordered = sorted(numbers, key=lambda number: position[target.sites[number].name])
            yield Family(tuple(ordered), None, len(ordered))


def _pairs(size: int) -> Iterable[tuple[int, int]]:
    """Members to be swapped: all with all where they are few, else neighbours."""
    return combinations(range(size), 2) if size <= _MOST_PAIRED else pairwise(range(size))


def _alike(families: Sequence[Family]) -> Iterable[tuple[Family, ...]]:
    """Families of one size that may belong together, the fewest first."""
    sizes: dict[int, list[Family]] = {}
    for family in families:
        sizes.setdefault(family.size, []).append(family)
    for members in sizes.values():
        few = len(members) <= _MOST_TOGETHER
        counts = range(1, len(members) + 1) if few else (1, len(members))
        for count in counts:
            for chosen in combinations(members, count):
                if len({site for family in chosen for site in family.sites}) == sum(
                    len(family.sites) for family in chosen
                ):
                    yield chosen


def vectors_of(fit: PathFit, columns: Sequence[np.ndarray]) -> np.ndarray:
    return fit.unconstrained({site.name: rows for site, rows in zip(fit.target.sites, columns, strict=True)})


def swapped_in(columns: Sequence[np.ndarray], families: Sequence[Family], i: int, j: int) -> list[np.ndarray]:
    """Rows with two members swapped in some families."""
    new = list(columns)
    for family in families:
        if family.axis is None:
            one, other = family.sites[i], family.sites[j]
            new[one], new[other] = columns[other], columns[one]
        else:
            order = np.arange(family.size)
            order[[i, j]] = j, i
            (site,) = family.sites
            new[site] = np.take(columns[site], order, axis=family.axis + 1)
    return new


def _groups(candidates: Sequence[Swap], same: np.ndarray) -> Iterable[Group]:
    """Members that swaps connect, in the fewest families; no site is in two groups of families."""
    found: dict[tuple[Family, ...], list[tuple[int, int]]] = {}
    for (together, pair), is_same in zip(candidates, same, strict=True):
        if is_same:
            found.setdefault(together, []).append(pair)
    taken: set[int] = set()
    for together, pairs in found.items():
        sites = {site for family in together for site in family.sites}
        if sites & taken:
            continue
        taken |= sites
        group_of = {member: frozenset([member]) for pair in pairs for member in pair}
        for one, other in pairs:
            merged = group_of[one] | group_of[other]
            group_of.update(dict.fromkeys(merged, merged))
        for members in dict.fromkeys(group_of.values()):
            yield Group(together, tuple(sorted(members)))


def ordered_by(groups: Sequence[Group], values: Sequence[np.ndarray]) -> tuple[Group, ...]:
    """The groups of which draws of a guide have chosen an order, with the key that tells members apart best.

    Where a guide has not, it holds all orders already.
    """
    chosen = []
    for group in groups:
        best, key = 0.0, (0, 0)
        for place, family in enumerate(group.families):
            members = np.stack([member_of(values, family, m) for m in group.members])
            flat = members.reshape(*members.shape[:2], -1)
            mean, variance = flat.mean(axis=1), flat.var(axis=1)
            apart = np.abs(mean[:, None] - mean[None]) / np.sqrt(
                np.maximum((variance[:, None] + variance[None]) / 2, 1e-300)
            )
            for element in range(flat.shape[2]):
                if apart[..., element].max() > best:
                    best, key = float(apart[..., element].max()), (place, element)
        if best > _SEPARATED:
            chosen.append(Group(group.families, group.members, key))
    return tuple(chosen)
