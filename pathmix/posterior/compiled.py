"""The functions of a path that its component needs, from its target."""

from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from pathmix.engine.batching import over_rows
from pathmix.engine.code import Arrays, Code
from pathmix.engine.executables import Executables
from pathmix.posterior.components import BLOCK, Compiled
from pathmix.program.canonical import canonical
from pathmix.program.graph import Graph
from pathmix.target.target import Target


class Function(NamedTuple):
    """A function, and what tells it from others on a path of the same structure."""

    key: Hashable
    build: Callable[[], Callable[..., Any]]


def rows_of(target: Target) -> int:
    """Draws that are made at once."""
    return target.rows_at_once(BLOCK)


def compiled(
    target: Target,
    executables: Executables,
    params: Any,
    block: jax.ShapeDtypeStruct,
    outcomes: Function,
    density: Function,
) -> Compiled:
    """Of (params, block, arguments, consts) -> Outcome, and of (params, values, arguments) -> log-density.

    What they compute with are leaves of one tree, since files know no trees.
    """
    slp = target.slp
    graph = _deterministics(target) if target.inert and slp.deterministics else None
    given = (params, target.arguments, target.site_graph.consts, () if graph is None else graph.consts)
    fixed, tree = jax.tree.flatten(given)

    def outcome() -> Callable[[Arrays, Arrays], Any]:
        function = outcomes.build()

        def call(changing: Arrays, fixed: Arrays) -> Any:
            params, arguments, consts, _ = tree.unflatten(fixed)
            return jax.tree.leaves(function(params, changing[0], arguments, consts))

        return call

    def log_density() -> Callable[[Arrays, Arrays], Any]:
        function = density.build()

        def call(changing: Arrays, fixed: Arrays) -> Any:
            params, arguments, *_ = tree.unflatten(fixed)
            return [function(params, changing, arguments)]

        return call

    def again(graph: Graph) -> Callable[[Arrays, Arrays], Any]:
        def call(changing: Arrays, fixed: Arrays) -> Any:
            consts = tree.unflatten(fixed)[-1]
            return over_rows(lambda *row: graph(consts, row))(*changing)

        return call

    rows, structure = rows_of(target), (target.site_structure, tree)
    values = tuple(jax.ShapeDtypeStruct(site.shape, site.dtype) for site in target.sites)
    columns = tuple(jax.ShapeDtypeStruct((rows, *site.shape), site.dtype) for site in slp.sites)
    return Compiled(
        outline=slp.outline,
        free=tuple(site.name for site in target.sites),
        inert=target.inert,
        outcomes=Code((outcomes.key, structure, block.shape), outcome, (block,)),
        density=Code((density.key, structure), log_density, values),
        recompute=None
        if graph is None
        else Code(("again", graph.structure, structure), partial(again, graph), columns),
        fixed=tuple(map(jnp.asarray, fixed)),
        rows=rows,
        executables=executables,
    )


def _deterministics(target: Target) -> Graph:
    """Computes deterministic sites from all others, which elements of their prior are put into."""
    order = range(len(target.slp.sites))
    graph = target.slp.graph.outputs([slot for _, slot in target.slp.deterministics])
    return canonical(graph, [None for _ in order], order=order).graph
