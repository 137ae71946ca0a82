"""The functions of a path that its component needs, from its target."""

from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from pathmix.engine.batching import over_rows
from pathmix.engine.code import Arrays, Code
from pathmix.engine.executables import Executables
from pathmix.posterior.components import BLOCK, Compiled
from pathmix.program.canonical import canonical
from pathmix.program.graph import Graph
from pathmix.summation.marginal import drawing, share, width
from pathmix.target.target import Target


class Function(NamedTuple):
    """A function, and what tells it from others on a path of the same structure."""

    key: Hashable
    build: Callable[[], Callable[..., Any]]


def rows_of(target: Target) -> int:
    """Draws that are made at once."""
    return target.formula.rows_at_once(BLOCK)


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
    later = slp.deterministics and (target.inert or slp.summation)
    graphs = _Later(
        recompute=_all_open(slp.graph.outputs([slot for _, slot in slp.deterministics])) if later else None,
        backward=None if slp.summation is None else _all_open(drawing(slp.summation)),
        share=None if slp.summation is None else _all_open(share(slp, slp.summation)),
    )
    consts = tuple(() if graph is None else graph.consts for graph in graphs)
    fixed, tree = jax.tree.flatten((params, target.arguments, target.site_graph.consts, consts))

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

    def by_graph(name: str, example: Arrays, *, of_rows: bool = True) -> Code | None:
        graph: Graph | None = getattr(graphs, name)
        if graph is None:
            return None

        def build() -> Callable[[Arrays, Arrays], Any]:
            def call(changing: Arrays, fixed: Arrays) -> Any:
                consts = getattr(_Later(*tree.unflatten(fixed)[-1]), name)
                run = lambda *row: graph(consts, row)  # noqa: E731
                return over_rows(run)(*changing) if of_rows else run(*changing)

            return call

        return Code((name, graph.structure, structure), build, example)

    rows, structure = rows_of(target), (target.site_structure, tree)
    values = tuple(jax.ShapeDtypeStruct(site.shape, site.dtype) for site in target.sites)
    everything = tuple(jax.ShapeDtypeStruct(site.shape, site.dtype) for site in slp.sites)
    columns = tuple(jax.ShapeDtypeStruct((rows, *one.shape), one.dtype) for one in everything)
    uniforms = jax.ShapeDtypeStruct(
        (rows, 0 if slp.summation is None else width(slp.summation)), jnp.result_type(float)
    )
    return Compiled(
        outline=slp.outline,
        free=tuple(site.name for site in target.sites),
        inert=target.inert,
        outcomes=Code((outcomes.key, structure, block.shape), outcome, (block,)),
        density=Code((density.key, structure), log_density, values),
        recompute=by_graph("recompute", columns),
        backward=by_graph("backward", (*columns, uniforms)),
        share=by_graph("share", everything, of_rows=False),
        fixed=tuple(map(jnp.asarray, fixed)),
        rows=rows,
        executables=executables,
    )


class _Later(NamedTuple):
    """Graphs of all sites, or what they captured."""

    recompute: Any
    backward: Any
    share: Any


def _all_open(graph: Graph) -> Graph:
    """In canonical form, with no input known."""
    order = range(len(graph.inputs))
    return canonical(graph, [None for _ in order], order=order).graph
