"""How much a density lacks because sums over values without an end were cut."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pathmix.program.graph import Graph
from pathmix.summation.marginal import Tables
from pathmix.summation.plan import Plan

_MOST_CELLS = 2**24  # of all rows
_FEWEST = 4  # rows


def lacking(graph: Graph, plan: Plan, names: Sequence[str], rows: Sequence[np.ndarray]) -> np.ndarray:
    """By which factors, less one, densities grow if these sites have twice their values.

    `rows` are values of all inputs of the graph; a few of them are looked at, and one if all are the same.
    """
    further = wider(plan, names)
    summed = {site.input for site in plan.sites}
    vary = any(np.any(column != column[:1]) for i, column in enumerate(rows) if i not in summed)
    most = max(_FEWEST, _MOST_CELLS // _cells(further)) if vary else 1
    some = [jnp.asarray(column[:most]) for column in rows]

    def log_gains(consts: Sequence[jax.Array], given: Sequence[jax.Array]) -> jax.Array:
        def log_gain(row: Sequence[jax.Array]) -> jax.Array:
            own, larger = (sum(Tables(graph, one).densities(consts, row)) for one in (plan, further))
            return jnp.asarray(larger - own)

        return jax.lax.map(log_gain, given)

    gain: Any = np.asarray(jax.jit(log_gains)(graph.consts, some), float)
    return np.expm1(np.where(np.isnan(gain), 0.0, np.minimum(gain, 700.0)))  # nothing at all, both times


def wider(plan: Plan, names: Sequence[str]) -> Plan:
    sites = tuple(
        site._replace(values=2 * site.values) if site.name in names else site for site in plan.sites
    )
    counts = np.repeat([site.values for site in sites], [site.size for site in sites])
    groups = tuple(replace(group, counts=tuple(counts[group.members[0]].tolist())) for group in plan.groups)
    return replace(plan, sites=sites, groups=groups)


def _cells(plan: Plan) -> int:
    """Of the tables of all terms."""
    return sum(
        math.prod(plan.sites[axis.site].values for axis in term.axes) * len(term.constant)
        for term in plan.terms
    )
