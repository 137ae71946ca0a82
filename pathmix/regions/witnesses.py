"""Boxes tried against the conditions that they were read from, on points that could tell them apart.

The points are prior draws of the path, and these with one element at a time moved: close to both sides
of each end, across the box, and far away from it. A condition must hold exactly inside its box.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pathmix.program.graph import Graph
from pathmix.program.slp import Site, StraightLineProgram
from pathmix.regions.intervals import Interval
from pathmix.regions.reading import Element

Box = dict[Element, Interval]

_DRAWS = 64
_ELEMENTS = 8  # of one box that are moved; they were read alike
_ROWS = 256  # at once: one size for all paths, so that operations are compiled once
_BYTES = 2**26
_NEAR = np.array([1e-6, 1e-3, 0.1])  # distances from an end, in units of the draws' spread
_FAR = np.array([1.0, 10.0, 1e3, 1e6, 1e12])
_ACROSS = np.array([1e-6, 0.01, 0.25, 0.5, 0.75, 0.99, 1 - 1e-6])
_ROUNDING = 1e4  # points so many units of rounding from an end say nothing


def agreeing(slp: StraightLineProgram, boxes: Mapping[int, Box], draws: dict[str, np.ndarray]) -> set[int]:
    """The outputs of the graph, among those with a box, that hold exactly inside it."""
    if not boxes:
        return set()
    graph = slp.graph.outputs(list(boxes))
    columns = {site: _column(slp.sites[site], draws) for site in needed(graph, slp.sites)}
    if not columns:
        return set()
    moves = [move for box in boxes.values() for move in _moves(box, columns)]
    tests = {output: _tests(box, columns) for output, box in boxes.items()}
    largest = max([graph.footprint, *(column.values[0].nbytes for column in columns.values())])
    rows = max(1, min(_ROWS, _BYTES // largest))
    count = min(len(column.values) for column in columns.values())
    wrong = set[int]()
    for start in range(0, count + len(moves), rows):
        numbers = np.arange(start, start + rows) % (count + len(moves))
        values = {site: column.values[numbers % count] for site, column in columns.items()}
        for row in np.flatnonzero(numbers >= count):
            move = moves[numbers[row] - count]
            values[move.site][row, move.position] = move.value
        for (output, parts), truth in zip(tests.items(), truths(graph, slp.sites, values), strict=True):
            inside, doubtful = np.ones(rows, bool), np.zeros(rows, bool)
            for part in parts:
                x = values[part.site][:, part.positions].astype(float)
                inside &= np.all(part.holds(x), axis=1)
                doubtful |= np.any(part.is_near(x), axis=1)
            if np.any((truth != inside) & ~doubtful):
                wrong.add(output)
    return set(boxes) - wrong


@dataclass(frozen=True, eq=False)
class _Column:
    """Draws of a site, one per row, and what they say about each of its elements."""

    values: np.ndarray
    middle: np.ndarray
    spread: np.ndarray
    lower: np.ndarray  # of the support
    upper: np.ndarray

    def margin(self, end: Any, position: Any) -> Any:
        """How far from an end rounding may reach."""
        return np.maximum(_ROUNDING * np.finfo(self.values.dtype).eps * np.abs(end), self.least(position))

    def least(self, position: Any) -> Any:
        return _NEAR[0] / 2 * self.spread[position]


def _column(site: Site, draws: dict[str, np.ndarray]) -> _Column:
    rows = draws[site.name]
    rows = rows[np.linspace(0, len(rows) - 1, min(len(rows), _DRAWS)).astype(int)]
    values = rows.reshape(len(rows), int(np.prod(site.shape, dtype=int))).astype(site.dtype)
    low, middle, high = np.percentile(values.astype(float), [25, 50, 75], axis=0)
    usable = np.isfinite(high - low) & (high > low)
    alone = np.where(np.isfinite(middle) & (middle != 0), np.abs(middle), 1.0)
    bounds = site.bounds if site.bounds is not None else (-np.inf, np.inf)
    lower, upper = (np.broadcast_to(np.asarray(b, float), site.shape).ravel() for b in bounds)
    return _Column(values, middle, np.where(usable, high - low, alone), lower, upper)


class _Move(NamedTuple):
    site: int
    position: int
    value: float


def _moves(box: Box, columns: Mapping[int, _Column]) -> Iterator[_Move]:
    elements = list(box)
    for number in np.unique(np.linspace(0, len(elements) - 1, min(len(elements), _ELEMENTS)).astype(int)):
        site, position = elements[number]
        for value in _points(box[site, position], columns[site], position):
            yield _Move(site, position, value)


def _points(interval: Interval, column: _Column, position: int) -> np.ndarray:
    """Points that would show an interval wrong, inside the support."""
    low, high, spread = (part[position] for part in (column.lower, column.upper, column.spread))
    ends = [end for end in (interval.lower, interval.upper) if np.isfinite(end)]
    found = [np.zeros(0)]
    for anchor in ends or [column.middle[position]]:
        near = np.maximum(_NEAR * spread, 2 * column.margin(anchor, position))
        distances = np.concatenate([near, _FAR * spread])
        found += [anchor - distances, anchor + distances]
    for start, stop in ((low, high), (max(low, interval.lower), min(high, interval.upper))):
        if np.isfinite(start) and np.isfinite(stop):
            found.append(start + (stop - start) * _ACROSS)
    points = np.concatenate(found)
    return points[(points > low) & (points < high) & np.isfinite(points)]


@dataclass(frozen=True, eq=False)
class _Test:
    """The part of a box that is about one site."""

    site: int
    positions: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    lower_closed: np.ndarray
    upper_closed: np.ndarray
    margins: tuple[np.ndarray, np.ndarray]

    def holds(self, x: np.ndarray) -> np.ndarray:
        above = (x > self.lower) | (self.lower_closed & (x == self.lower))
        return above & ((x < self.upper) | (self.upper_closed & (x == self.upper)))

    def is_near(self, x: np.ndarray) -> np.ndarray:
        near = np.zeros(x.shape, bool)
        for end, margin in zip((self.lower, self.upper), self.margins, strict=True):
            near |= np.isfinite(end) & (np.abs(x - np.where(np.isfinite(end), end, 0.0)) < margin)
        return near


def _tests(box: Box, columns: Mapping[int, _Column]) -> list[_Test]:
    tests = []
    for site in sorted({site for site, _ in box}):
        mine = [(position, interval) for (s, position), interval in box.items() if s == site]
        positions = np.array([position for position, _ in mine])
        intervals = [interval for _, interval in mine]
        lower = np.array([interval.lower for interval in intervals])
        upper = np.array([interval.upper for interval in intervals])
        closed = (
            np.array([interval.lower_closed for interval in intervals]),
            np.array([interval.upper_closed for interval in intervals]),
        )
        margins = tuple(columns[site].margin(end, positions) for end in (lower, upper))
        tests.append(_Test(site, positions, lower, upper, *closed, margins))
    return tests


def needed(graph: Graph, sites: Sequence[Site]) -> list[int]:
    """The free sites that a graph looks at."""
    used = {id(atom) for eqn in graph.jaxpr.eqns for atom in eqn.invars} | set(map(id, graph.jaxpr.outvars))
    return [
        index
        for index, (var, site) in enumerate(zip(graph.inputs, sites, strict=True))
        if site.pinned is None and id(var) in used
    ]


def truths(graph: Graph, sites: Sequence[Site], values: dict[int, np.ndarray]) -> list[np.ndarray]:
    """The conditions for each row, as the program itself computes them."""
    fixed = [
        jnp.asarray(site.pinned) if site.pinned is not None else jnp.zeros(site.shape, site.dtype)
        for site in sites
    ]

    def conditions(rows: dict[int, jax.Array]) -> list[Any]:
        given = [rows[i].reshape(site.shape) if i in rows else fixed[i] for i, site in enumerate(sites)]
        return [jnp.reshape(truth, ()) for truth in graph(graph.consts, given)]

    count = len(next(iter(values.values())))
    found = jax.vmap(conditions)({site: jnp.asarray(rows) for site, rows in values.items()})
    return [np.broadcast_to(np.asarray(truth), (count,)) for truth in found]
