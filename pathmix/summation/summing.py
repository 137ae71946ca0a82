"""Sum discrete sites out of a straight-line program, where that is possible and pays.

It pays where sums fall apart: assignments in a plate, the states of a chain. Where all sites meet in one
table, each of its cells might as well be a path: the posterior of the other sites often differs much from one
to the next, and a guide fits each better than their mixture. What has too
many values to list is summed all the same.
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
from pathmix.summation.beyond import lacking
from pathmix.summation.elements import dependence
from pathmix.summation.finer import finer
from pathmix.summation.marginal import Tables, made
from pathmix.summation.plan import Plan, SummedSite, TooWideError, make_plan, variable_sets
from pathmix.summation.sets import Sets
from pathmix.summation.tails import MOST_VALUES, Depending, NoEndError, values_of

# Where nothing is gained, sites are pinned while they have at most this many values.
MAX_UNDECIDING_VALUES = 256
_PAYS = 4.0  # settings for each cell of the largest table
_MOST_SETTINGS = 2**16  # each of which may be a path
_NAMED = 6  # sites in a message
_LITTLE = 1e-9  # of the density, that may lie beyond a cut


class CannotSumError(Exception):
    """Why discrete sites cannot be summed out, in words that follow a colon."""


def summed_out(slp: StraightLineProgram, draws: SiteRows) -> StraightLineProgram | None:
    """The program without the sites that its path says are to be summed out, given prior draws.

    None if nothing is gained. An error of the user's where tables would be too large, and there are too many
    values for each to be a path.
    """
    if slp.minibatch is not None:
        raise CannotSumError("that is not done in programs that subsample plates")
    traced = slp.graph
    graph, terms = finer(slp.graph, slp.terms)
    slp = replace(slp, graph=graph, terms=terms)
    sites = [_values(number, site) for number, site in enumerate(slp.sites) if site.is_summed]
    sets = Sets()
    depends = dependence(slp.graph, [site.pinned for site in slp.sites], variable_sets(sites, sets), sets)
    if _is_in_the_way(slp, depends):
        raise CannotSumError(
            "a decision, a support or a mask depends on a site that is to be summed out with it"
        )
    outputs = [(term, depends[term.slot]) for term in slp.terms if depends[term.slot] is not None]
    unbounded = tuple(site.name for site in sites if not site.values)
    try:
        plan = _planned(slp, sites, outputs, sets, draws)
    except TooWideError as error:
        if unbounded or _log_settings(sites) > math.log(_MOST_SETTINGS):
            raise _too_wide(slp, error.names) from error
        raise CannotSumError("tables would be too large, as too many sites meet in the density") from error
    sites = plan.sites
    most = max(_log_settings([site]) for site in sites)
    can_be_listed = not unbounded and most <= math.log(MAX_UNDECIDING_VALUES)
    if can_be_listed and _log_settings(sites) < math.log(_PAYS * plan.widest):
        return None
    return _without(slp, traced, plan, [term.slot for term, _ in outputs], depends, unbounded)


def _planned(
    slp: StraightLineProgram,
    sites: Sequence[SummedSite],
    outputs: Sequence[Depending],
    sets: Sets,
    draws: SiteRows,
) -> Plan:
    """With sites without an end cut; where these meet, so far out that nothing changes at prior draws."""
    cut, is_whole = list(sites), True
    for place, site in enumerate(sites):
        if not site.values:
            try:
                values, whole = values_of(slp, place, sites, outputs, sets, draws)
            except NoEndError as error:
                raise CannotSumError(f"{site.name!r} has no upper end, and {error}") from error
            cut[place], is_whole = site._replace(values=values), is_whole and whole
    plan = make_plan(cut, outputs, sets)
    rows = [np.asarray(draws[site.name], site.dtype) for site in slp.sites]
    for place, site in enumerate(sites):
        while not site.values and not is_whole:
            if np.max(lacking(slp.graph, plan, [site.name], rows)) < _LITTLE:
                break
            cut[place] = cut[place]._replace(values=2 * cut[place].values)
            if cut[place].values > MOST_VALUES:
                raise CannotSumError(
                    f"{site.name!r} has no upper end, and together with other sites it still has mass beyond "
                    f"{site.low + MOST_VALUES - 1:,}"
                )
            plan = make_plan(cut, outputs, sets)
    return plan


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


def _values(number: int, site: Site) -> SummedSite:
    """A site with its values, or none so far if there is no upper end."""
    low, high = _bounds(site)
    if low.size == 0 or not np.all(np.isfinite(low)) or np.any(np.isnan(high)):
        raise CannotSumError(f"the support of {site.name!r} depends on another site, or has no lower end")
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
