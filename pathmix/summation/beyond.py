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


def lacking(graph: Graph, plan: Plan, names: Sequence[str], rows: Sequence[np.ndarray]) -> np.ndarray:
    """By which factors, less one, densities grow if these sites have twice their values.

    `rows` are values of all inputs of the graph; a few of them are looked at.
    """
    further = wider(plan, names)
    fewest = 4
    some = [jnp.asarray(column[: max(fewest, _MOST_CELLS // _cells(further))]) for column in rows]

    def log_gain(row: Sequence[jax.Array]) -> jax.Array:
        own, larger = (sum(Tables(graph, one).densities(graph.consts, row)) for one in (plan, further))
        return jnp.asarray(larger - own)

    gain: Any = np.asarray(jax.jit(lambda given: jax.lax.map(log_gain, given))(some), float)
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
