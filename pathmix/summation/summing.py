"""Sum discrete sites out of a straight-line program, where that is possible and pays.

It pays where sums fall apart: assignments in a plate, the states of a chain. Where all sites meet in one
table, each of its cells might as well be a path: the posterior of the other sites often differs much from one
to the next, and a guide fits each better than their mixture.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np

from pathmix.errors import UnsupportedSiteError
from pathmix.program.graph import Graph
from pathmix.program.slp import Site, StraightLineProgram, Summation
from pathmix.program.values import SiteRows
from pathmix.summation.elements import dependence
from pathmix.summation.finer import finer
from pathmix.summation.marginal import Tables, made
from pathmix.summation.plan import Plan, SummedSite, TooWideError, make_plan, variable_sets
from pathmix.summation.sets import Sets
from pathmix.summation.tails import values_of

_PAYS = 4.0  # settings for each cell of the largest table
_MOST_SETTINGS = 2**16  # each of which may be a path
_NAMED = 6  # sites in a message


def summed_out(slp: StraightLineProgram, draws: SiteRows) -> StraightLineProgram | None:
    """The program without the sites that its path says are to be summed out, given prior draws.

    None if it cannot be, or if nothing is gained. An error where tables would be too large, and there are
    too many values for each to be a path.
    """
    if slp.minibatch is not None:
        return None
    traced = slp.graph
    graph, terms = finer(slp.graph, slp.terms)
    slp = replace(slp, graph=graph, terms=terms)
    found = [_values(number, site) for number, site in enumerate(slp.sites) if site.is_summed]
    sites = [site for site in found if site is not None]
    if len(sites) < len(found):
        return None
    sets = Sets()
    depends = dependence(slp.graph, [site.pinned for site in slp.sites], variable_sets(sites, sets), sets)
    if _is_in_the_way(slp, depends):
        return None
    outputs = [(term, depends[term.slot]) for term in slp.terms if depends[term.slot] is not None]
    unbounded, first = tuple(site.name for site in sites if not site.values), 0
    for place, site in enumerate(sites):
        if site.name in unbounded:
            others = [other for other in sites if other.values]
            count = values_of(slp, site, others, outputs, first, sets, draws)
            if count is None:
                return None
            sites[place] = site._replace(values=count)
        first += site.size
    try:
        plan = make_plan(sites, outputs, sets)
    except TooWideError as error:
        if _log_settings(sites) > math.log(_MOST_SETTINGS):
            raise _too_wide(slp, error.names) from error
        return None
    if _log_settings(sites) < math.log(_PAYS * plan.widest):
        return None
    return _without(slp, traced, plan, [term.slot for term, _ in outputs], depends, unbounded)


def _is_in_the_way(slp: StraightLineProgram, depends: Sequence[Any]) -> bool:
    """Whether something depends on the sites that must not: a decision, a support, a mask."""
    decisions = range(slp.FIRST_CONDITION, slp.FIRST_CONDITION + len(slp.path.decisions))
    supports = [slot for site in slp.free if site.bijection for slot in site.bijection.slots]
    fixed = [*decisions, *supports, *(slot for _, slot in slp.masks)]
    free = {number for number, site in enumerate(slp.sites) if site in slp.free}
    moved = [
        slot
        for slot in slp.conditions[len(slp.path.decisions) :]
        if depends[slot] is not None and slp.graph.outputs([slot]).sites & free
    ]
    return bool(moved) or any(depends[slot] is not None for slot in fixed)


def _log_settings(sites: Sequence[SummedSite]) -> float:
    return sum(site.size * math.log(site.values) for site in sites)


def _too_wide(slp: StraightLineProgram, names: Sequence[str]) -> UnsupportedSiteError:
    shown = ", ".join(map(repr, names[:_NAMED])) + (", ..." if len(names) > _NAMED else "")
    place = next(site.source for site in slp.sites if site.name == names[0])
    return UnsupportedSiteError(
        f"The discrete sites {shown} (the first at {place}) decide no branch, and so many meet "
        "in the density that their values cannot be summed out: tables would be too large. Let "
        "fewer of them meet, with sites in a plate or a chain of them; or decide on them in Python "
        "(`if z:`, `int(z)`), which makes each value a path that is looked for."
    )


def _values(number: int, site: Site) -> SummedSite | None:
    """A site with its values, or none so far if there is no upper end; None if they are not known."""
    low, high = _bounds(site)
    if low.size == 0 or not np.all(np.isfinite(low)) or np.any(np.isnan(high)):
        return None
    first = int(low.min())
    values = int(high.max()) - first + 1 if np.all(np.isfinite(high)) else 0
    return SummedSite(number, site.name, site.shape, first, values)


def _bounds(site: Site) -> np.ndarray:
    """The lowest and the highest value of each element; not finite where they are not known."""
    bounds = site.bounds_here or site.bounds or (np.nan, np.nan)
    return np.stack([np.broadcast_to(np.asarray(bound, float), site.shape) for bound in bounds])


def _without(
    slp: StraightLineProgram,
    traced: Graph,
    plan: Plan,
    slots: Sequence[int],
    depends: Sequence[Any],
    unbounded: tuple[str, ...],
) -> StraightLineProgram:
    graph, tables = slp.graph, Tables(slp.graph, plan)
    count = len(graph.jaxpr.outvars)
    gone = {slot for slot in slp.conditions if depends[slot] is not None}
    others = {term.slot: term for term in slp.terms if term.slot not in slots}

    def outputs(consts: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
        found = graph(consts, inputs)
        prior, likelihood = tables.densities(consts, inputs)
        for slot, term in others.items():
            total = jnp.sum(found[slot])
            prior, likelihood = (prior + total, likelihood) if term.is_prior else (prior, likelihood + total)
        rest = [jnp.array(True) if slot in gone else found[slot] for slot in range(2, count)]
        return [prior, likelihood, *rest, found[slp.LOG_PRIOR] + found[slp.LOG_LIKELIHOOD]]

    return replace(
        slp,
        graph=made(outputs, graph),
        terms=(),
        summation=Summation(
            names=tuple(site.name for site in plan.sites),
            joint=count,
            before=graph,
            traced=traced,
            plan=plan,
            cut=unbounded,
        ),
    )
