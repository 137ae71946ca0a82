"""Inert elements: those of latent sites that never reach the density.

Under a mask an element has no density of its own. If nothing else depends on it, a guide could widen there
without bound, so such elements are no part of what is fitted: draws take them from their prior.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from pathmix.program.graph import Graph
from pathmix.program.slp import StraightLineProgram

Inert = dict[str, np.ndarray]  # for each site that has some: which elements
_ROWS = 8  # of prior draws

Reach = Callable[[np.ndarray], bool]  # whether some elements, changed together, change anything


def inert_elements(slp: StraightLineProgram, draws: dict[str, np.ndarray]) -> Inert:
    """The masked elements of free sites that change nothing: not the density, a condition or a support."""
    candidates = {name: hidden for name, slot in slp.masks if (hidden := _hidden(slp, slot)).any()}
    if not candidates:
        return {}
    slots = [slot for site in slp.free if site.bijection for slot in site.bijection.slots]
    graph = slp.graph.outputs([slp.LOG_PRIOR, slp.LOG_LIKELIHOOD, *slp.conditions, *slots])
    rows = {site.name: jnp.asarray(draws[site.name][:_ROWS]) for site in slp.sites}
    names = list(candidates)
    sizes = [candidates[name].size for name in names]
    ends = np.cumsum([0, *sizes])

    def split(flat: np.ndarray) -> dict[str, np.ndarray]:
        return {
            name: flat[start:stop].reshape(candidates[name].shape)
            for name, start, stop in zip(names, ends[:-1], ends[1:], strict=True)
        }

    order = list(rows)  # JAX sorts the keys of a dict

    def evaluate(values: dict[str, jax.Array]) -> list[jax.Array]:
        return graph(graph.consts, [values[name] for name in order])

    run = jax.jit(jax.vmap(evaluate))
    before = run(rows)

    def reaches(flat: np.ndarray) -> bool:
        changed = dict(rows)
        for name, chosen in split(flat).items():
            alone = len(rows[name]) == 1
            other = 0.9 * rows[name] if alone else jnp.roll(rows[name], 1, axis=0)
            changed[name] = jnp.where(chosen, other, rows[name])
        after = run(changed)
        return not all(
            np.array_equal(a, b, equal_nan=_is_float(a)) for a, b in zip(before, after, strict=True)
        )

    hidden = np.concatenate([candidates[name].ravel() for name in names])
    still = hidden & ~np.concatenate([moves.ravel() for moves in _slopes(graph, rows, names)])
    found = split(_without_reach(still, reaches))
    return {name: elements for name, elements in found.items() if elements.any()}


def _hidden(slp: StraightLineProgram, slot: int) -> np.ndarray:
    """The elements that a mask hides, if it depends on no free site; else none."""
    graph = slp.graph.outputs([slot])
    free = {index for index, site in enumerate(slp.sites) if site.pinned is None}
    if graph.sites & free:
        return np.zeros(graph.output_shape(0), bool)
    values = [jnp.zeros(s.shape, s.dtype) if s.pinned is None else jnp.asarray(s.pinned) for s in slp.sites]
    return ~np.asarray(graph(graph.consts, values)[0])


def _slopes(graph: Graph, rows: dict[str, jax.Array], names: list[str]) -> list[np.ndarray]:
    """Which elements have a derivative somewhere: most that reach the density do."""

    def total(values: dict[str, jax.Array]) -> jax.Array:
        outputs = graph(graph.consts, list(values.values()))
        return sum((jnp.sum(x) for x in outputs if _is_float(x)), jnp.zeros(()))

    def slopes(chosen: dict[str, jax.Array], others: dict[str, jax.Array]) -> dict[str, jax.Array]:
        return jax.grad(lambda c: total({name: (c | others)[name] for name in rows}))(chosen)

    chosen = {name: rows[name] for name in names}
    others = {name: values for name, values in rows.items() if name not in names}
    found = jax.jit(jax.vmap(slopes))(chosen, others)
    return [np.any(np.asarray(found[name]) != 0, axis=0) for name in names]


def _without_reach(elements: np.ndarray, reaches: Reach) -> np.ndarray:
    """The elements less those that change something; steps have no derivative, so it is tried."""
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
