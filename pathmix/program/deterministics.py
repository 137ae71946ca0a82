"""The deterministic sites of a straight-line program, at latent values that somebody else has drawn."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pathmix.program.slp import StraightLineProgram
from pathmix.program.values import SiteRows


def deterministic_sites(slp: StraightLineProgram, values: SiteRows) -> SiteRows:
    """By name, for each row of the latent sites."""
    if not slp.deterministics:
        return {}
    graph = slp.graph.outputs([slot for _, slot in slp.deterministics])
    columns = [jnp.asarray(values[site.name], site.dtype) for site in slp.sites]
    results: list[Any] = jax.jit(jax.vmap(lambda *row: graph(graph.consts, row)))(*columns)
    return {name: np.asarray(r) for (name, _), r in zip(slp.deterministics, results, strict=True)}
