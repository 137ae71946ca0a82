"""Inert elements: those of latent sites that never reach the density.

Under a mask an element has no density of its own. If nothing else depends on it, a guide could widen there
without bound, so such elements are no part of what is fitted: draws take them from their prior.
"""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pathmix.program.graph import Graph
from pathmix.program.slp import StraightLineProgram
from pathmix.program.values import SiteRows
from pathmix.regions.expressions import expressions
from pathmix.target.reach import reach

Inert = dict[str, np.ndarray]  # for each site that has some: which elements
_ROWS = 64  # of prior draws

Reaches = Callable[[np.ndarray], bool]  # whether some elements, changed together, can change anything


def inert_elements(slp: StraightLineProgram, draws: SiteRows) -> Inert:
    """The masked elements of free sites that change nothing: not the density, a condition or a support."""
    candidates = {name: hidden for name, slot in slp.masks if (hidden := _hidden(slp, slot)).any()}
    if not candidates:
        return {}
    graph = _watched(slp)
    numbers = {site.name: number for number, site in enumerate(slp.sites)}
    outputs = expressions(graph, slp.known)
    rows = {site.name: draws[site.name][:_ROWS] for site in slp.sites}
    changes = _Changes(graph, rows, {name: _others(rows[name]) for name in candidates})
    ends = np.cumsum([0, *(hidden.size for hidden in candidates.values())])

    def split(flat: np.ndarray) -> dict[str, np.ndarray]:
        parts = zip(candidates.items(), ends[:-1], ends[1:], strict=True)
        return {name: flat[start:stop].reshape(hidden.shape) for (name, hidden), start, stop in parts}

    def reaches(flat: np.ndarray) -> bool:
        elements = split(flat)
        found = reach(outputs, {numbers[name]: chosen for name, chosen in elements.items()})
        # Where operations say too little, prior draws must tell; draws of the guide are tried later.
        return found.reached and (found.exact or changes.by(elements))

    hidden = np.concatenate([elements.ravel() for elements in candidates.values()])
    found = split(_without_reach(hidden, reaches))
    return {name: elements for name, elements in found.items() if elements.any()}


def reaching(slp: StraightLineProgram, inert: Inert, rows: SiteRows, prior: SiteRows) -> bool:
    """Whether elements that were thought to be inert change something at these values of all sites.

    They are put to values of their prior.
    """
    others = {name: np.resize(prior[name], rows[name].shape) for name in inert}
    return _Changes(_watched(slp), {site.name: rows[site.name] for site in slp.sites}, others).by(inert)


def _others(values: np.ndarray) -> np.ndarray:
    """For each row, what another one has."""
    return 0.9 * values if len(values) == 1 else np.roll(values, 1, axis=0)


def _watched(slp: StraightLineProgram) -> Graph:
    """All that an element must not change."""
    slots = [slot for site in slp.free if site.bijection for slot in site.bijection.slots]
    return slp.graph.outputs([slp.LOG_PRIOR, slp.LOG_LIKELIHOOD, *slp.conditions, *slots])


class _Changes:
    """What a graph gives at some rows of values, and whether it gives the same with elements changed."""

    def __init__(self, graph: Graph, rows: SiteRows, others: SiteRows) -> None:
        self._names, self._others = list(rows), others
        self._rows = {name: jnp.asarray(values) for name, values in rows.items()}
        self._run = jax.jit(jax.vmap(lambda *values: graph(graph.consts, values)))
        self._before: list[Any] | None = None

    def by(self, elements: Mapping[str, np.ndarray]) -> bool:
        changed = dict(self._rows)
        for name, chosen in elements.items():
            changed[name] = jnp.where(chosen, self._others[name], self._rows[name])
        before = self._before = self._before or self._results(self._rows)
        pairs = zip(before, self._results(changed), strict=True)
        return not all(np.array_equal(a, b, equal_nan=_is_float(a)) for a, b in pairs)

    def _results(self, rows: dict[str, jax.Array]) -> list[Any]:
        return self._run(*(rows[name] for name in self._names))


def _hidden(slp: StraightLineProgram, slot: int) -> np.ndarray:
    """The elements that a mask hides, if it depends on no free site; else none."""
    graph = slp.graph.outputs([slot])
    free = {index for index, site in enumerate(slp.sites) if site in slp.free}
    if graph.sites & free:
        return np.zeros(graph.output_shape(0), bool)
    values = [jnp.zeros(s.shape, s.dtype) if s.pinned is None else jnp.asarray(s.pinned) for s in slp.sites]
    return ~np.asarray(graph(graph.consts, values)[0])


def _without_reach(elements: np.ndarray, reaches: Reaches) -> np.ndarray:
    """The elements less those that can change something."""
    if not elements.any() or not reaches(elements):
        return elements
    positions = np.flatnonzero(elements)
    if len(positions) == 1:
        return np.zeros_like(elements)
    first = np.zeros_like(elements)
    first[positions[: len(positions) // 2]] = True
    return _without_reach(first, reaches) | _without_reach(elements & ~first, reaches)


def _is_float(array: jax.Array) -> bool:
    return jnp.issubdtype(jnp.asarray(array).dtype, jnp.floating)
