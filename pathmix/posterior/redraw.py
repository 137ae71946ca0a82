"""Inert elements of draws, taken from their prior given everything else."""

import numpy as np

from pathmix.posterior.components import Component
from pathmix.program.program import Program
from pathmix.program.runs import runs
from pathmix.program.seeds import Seed
from pathmix.program.values import SiteRows
from pathmix.program.wishes import Wishes


def redraw(program: Program, component: Component, seed: Seed, drawn: SiteRows) -> SiteRows:
    """Draws whose inert elements come from runs of the program with everything else put in."""
    count, inert = len(next(iter(drawn.values()))), component.inert
    # A gap stands for what the run shall draw.
    given = {
        site.name: np.where(inert[site.name], np.nan, drawn[site.name])
        if site.name in inert
        else drawn[site.name]
        for site in component.outline.sites
    }
    wishes = Wishes(given, complete=True, gaps=frozenset(inert))
    fresh = {name: drawn[name].copy() for name in inert}
    for rows, done, batch_run in runs(program, wishes, seed, count):
        for name in inert:
            fresh[name][rows] = batch_run.values[name][done]
    return {**drawn, **fresh, **component.deterministics({**drawn, **fresh})}
