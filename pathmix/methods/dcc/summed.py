"""What was summed out of a path, for chains that move its other sites."""

import jax
import jax.numpy as jnp
import numpy as np

from pathmix.program.deterministics import deterministic_sites
from pathmix.program.seeds import Seed
from pathmix.program.slp import StraightLineProgram
from pathmix.program.values import SiteRows, SiteValues
from pathmix.summation.marginal import drawing, share, width


def completed(slp: StraightLineProgram, rows: SiteRows, count: int, seed: Seed) -> SiteRows:
    """Rows of the other sites with values of those that were summed out, and what follows from them."""
    if slp.summation is None:
        return rows
    graph = drawing(slp.summation)
    columns = [rows.get(s.name, np.zeros((count, *s.shape))) for s in slp.sites]
    given = [jnp.asarray(column, site.dtype) for column, site in zip(columns, slp.sites, strict=True)]
    uniforms = seed.generator().random((count, width(slp.summation)))
    found = jax.jit(jax.vmap(lambda *row: graph(graph.consts, row)))(*given, jnp.asarray(uniforms))
    names = slp.summation.names
    whole = {**rows, **{name: np.asarray(values) for name, values in zip(names, found, strict=True)}}
    return {**whole, **deterministic_sites(slp, whole)}


def log_share(slp: StraightLineProgram, values: SiteValues) -> float:
    """The log-probability of their values, given those of all others."""
    if slp.summation is None:
        return 0.0
    graph = share(slp, slp.summation)
    row = [jnp.asarray(values[site.name], site.dtype) for site in slp.sites]
    return float(graph(graph.consts, row)[0])
