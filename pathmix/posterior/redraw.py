"""Inert elements of draws, taken from their prior given everything else."""

import jax
import jax.numpy as jnp
import numpy as np

from pathmix.program.program import Program
from pathmix.program.runs import runs
from pathmix.program.seeds import Seed
from pathmix.program.slp import StraightLineProgram
from pathmix.program.values import SiteRows
from pathmix.program.wishes import Wishes
from pathmix.target.inert import Inert


def redraw(program: Program, slp: StraightLineProgram, inert: Inert, seed: Seed, drawn: SiteRows) -> SiteRows:
    """Draws whose inert elements come from runs of the program with everything else put in."""
    count = len(next(iter(drawn.values())))
    # A gap stands for what the run shall draw.
    given = {
        site.name: np.where(inert[site.name], np.nan, drawn[site.name])
        if site.name in inert
        else drawn[site.name]
        for site in slp.sites
    }
    wishes = Wishes(given, complete=True, gaps=frozenset(inert))
    fresh = {name: drawn[name].copy() for name in inert}
    for rows, done, batch_run in runs(program, wishes, seed, count):
        for name in inert:
            fresh[name][rows] = batch_run.values[name][done]
    return {**drawn, **fresh, **_deterministic(slp, {**drawn, **fresh})}


def _deterministic(slp: StraightLineProgram, values: SiteRows) -> SiteRows:
    if not slp.deterministics:
        return {}
    graph = slp.graph.outputs([slot for _, slot in slp.deterministics])
    columns = [jnp.asarray(values[site.name], site.dtype) for site in slp.sites]
    results = jax.jit(jax.vmap(lambda *row: graph(graph.consts, row)))(*columns)
    return {name: np.asarray(r) for (name, _), r in zip(slp.deterministics, results, strict=True)}
