"""The other side of a decision: values of the sites before it with which it comes out otherwise.

Where the other side bounds single elements, these are drawn inside the bounds. Elsewhere prior draws are
moved away from their middle, farther and farther, until some of them are on the other side; the program's own
conditions say which.
"""

from collections.abc import Iterator

import jax.numpy as jnp
import numpy as np

from pathmix.program.slp import Site, StraightLineProgram
from pathmix.program.values import SiteRows
from pathmix.regions.intervals import Interval
from pathmix.regions.region import condition_expressions, merge, read_box, read_conditions
from pathmix.regions.witnesses import Box, needed, truths

_ROWS = 256  # at once: one size for all paths, so that operations are compiled once
_BATCHES = 4
_ENOUGH = 16
_FARTHEST = 1e4  # from the middle, in units of how far a draw is


def other_side(
    slp: StraightLineProgram, draws: SiteRows, decision: int, generator: np.random.Generator
) -> SiteRows | None:
    """A few rows of values of the sites before a decision; None where none are found."""
    before = slp.sites[: slp.decided_after[decision]]
    first = slp.FIRST_CONDITION
    graph = slp.graph.outputs(range(first, first + decision + 1))
    wanted = needed(graph, slp.sites)
    middles = {n: _middle(draws[slp.sites[n].name]) for n in wanted}
    box = _other_box(slp, draws, decision)
    kept: list[SiteRows] = []
    for batch in range(_BATCHES):
        # From near to far: what is on the other side and near is likelier there.
        scales = _FARTHEST ** ((batch + generator.uniform(size=_ROWS)) / _BATCHES)
        rows = generator.integers(len(next(iter(draws.values()))), size=_ROWS)
        values = {n: draws[slp.sites[n].name][rows].reshape(_ROWS, -1).copy() for n in wanted}
        if box is not None:
            for (site, position), interval in box.items():
                values[site][:, position] = _inside(interval, values[site][:, position], generator)
        else:
            for n in wanted:
                values[n] = _moved(slp.sites[n], values[n], middles[n], scales, generator)
        values = {n: v.astype(slp.sites[n].dtype) for n, v in values.items()}
        *earlier, own = truths(graph, slp.sites, values)
        good = np.flatnonzero(np.logical_and.reduce([~own, *earlier]))
        good = good[np.argsort(scales[good])][:_ENOUGH]
        if len(good):
            kept.append(_rows(before, slp, draws, rows[good], {n: v[good] for n, v in values.items()}))
        if sum(len(next(iter(one.values()))) for one in kept) >= _ENOUGH or (box is not None and kept):
            break
    if not kept:
        return None
    return {name: np.concatenate([one[name] for one in kept])[:_ENOUGH] for name in kept[0]}


def strayed(slp: StraightLineProgram, values: SiteRows) -> Iterator[SiteRows]:
    """Rows of values off a path, up to the decision that they first come out otherwise at, one by one."""
    first, count = slp.FIRST_CONDITION, len(next(iter(values.values())))
    decisions = range(first, first + len(slp.path.decisions))
    graph = slp.graph.outputs(decisions)
    rows, wanted = np.arange(_ROWS) % count, needed(graph, slp.sites)
    if not wanted or any(slp.sites[n].name not in values for n in wanted):
        return
    columns = {
        n: values[slp.sites[n].name][rows].reshape(_ROWS, -1).astype(slp.sites[n].dtype) for n in wanted
    }
    holds = np.stack(truths(graph, slp.sites, columns))[:, :count]
    off = np.where(np.all(holds, axis=0), -1, np.argmin(holds, axis=0))
    for decision in np.unique(off[off >= 0]):
        mine = np.flatnonzero(off == decision)
        yield {
            site.name: values[site.name][mine]
            if site.pinned is None
            else np.broadcast_to(site.pinned, (len(mine), *site.shape))
            for site in slp.sites[: slp.decided_after[decision]]
            if site.pinned is not None or site.name in values  # what nothing depends on is drawn
        }


def _other_box(slp: StraightLineProgram, draws: SiteRows, decision: int) -> Box | None:
    """What the other side says of single elements, after the decisions before."""
    box = read_box(slp, condition_expressions(slp)[decision], wanted=False)
    for condition in read_conditions(slp, draws)[:decision]:
        if box is not None and condition.box:
            box = merge(slp, box, condition.box)
    return None if box is None else merge(slp, {}, box)


def _inside(interval: Interval, draws: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Numbers in an interval: all over it, or not far from its end in units of the draws' spread."""
    low, high = interval.lower, interval.upper
    if np.isfinite(low) and np.isfinite(high):
        return low + (high - low) * generator.uniform(size=len(draws))
    spread = float(np.std(draws)) or 1.0
    away = spread * generator.exponential(size=len(draws))
    return low + away if np.isfinite(low) else high - away if np.isfinite(high) else draws


def _moved(
    site: Site,
    values: np.ndarray,
    middle: np.ndarray,
    scales: np.ndarray,
    generator: np.random.Generator,
) -> np.ndarray:
    """Half of the sites of a row as they were drawn, the others away from the middle, inside the support."""
    if site.bounds is None:
        return _moved_in_space(site, values, scales, generator)
    low, high = (np.broadcast_to(np.asarray(b, float), site.shape).ravel() for b in site.bounds)
    factor = np.where(generator.uniform(size=len(values)) < 0.5, scales, 1.0)[:, None]
    down = np.where(generator.uniform(size=len(values)) < 0.5, 1 / factor[:, 0], factor[:, 0])[:, None]
    real = middle + factor * (values - middle)
    with np.errstate(invalid="ignore"):
        above, below = low + down * (values - low), high - down * (high - values)
        across = low + (high - low) * generator.uniform(size=values.shape)
    bounded = np.where(np.isfinite(high), np.where(factor > 1, across, values), above)
    return np.where(np.isfinite(low), bounded, np.where(np.isfinite(high), below, real))


def _moved_in_space(
    site: Site, values: np.ndarray, scales: np.ndarray, generator: np.random.Generator
) -> np.ndarray:
    """The same for a support that is no interval for each element (a simplex, say), where it is known."""
    template = site.bijection
    if template is None or template.slots:
        return values
    bijection = template.treedef.unflatten([jnp.asarray(leaf) for leaf in template.leaves])
    vectors = np.asarray(bijection.inv(values.reshape(-1, *site.shape)))
    factor = np.where(generator.uniform(size=len(values)) < 0.5, scales, 1.0)
    middle = np.median(vectors, axis=0)
    there = bijection(middle + factor.reshape(-1, *[1] * (vectors.ndim - 1)) * (vectors - middle))
    moved = np.asarray(there).reshape(values.shape)
    # Far out, rounding puts values on the edge of the support, or beyond it.
    back = np.asarray(bijection.inv(there)).reshape(len(values), -1)
    usable = (factor > 1) & np.isfinite(moved).all(axis=1) & np.isfinite(back).all(axis=1)
    return np.where(usable[:, None], moved, values)


def _middle(draws: np.ndarray) -> np.ndarray:
    return np.median(draws.reshape(len(draws), -1).astype(float), axis=0)


def _rows(
    before: tuple[Site, ...],
    slp: StraightLineProgram,
    draws: SiteRows,
    rows: np.ndarray,
    changed: dict[int, np.ndarray],
) -> SiteRows:
    """All sites before the decision, in the rows that were chosen."""
    numbers = {site.name: n for n, site in enumerate(slp.sites)}
    return {
        site.name: changed[numbers[site.name]].reshape(len(rows), *site.shape)
        if numbers[site.name] in changed
        else draws[site.name][rows]
        for site in before
    }
