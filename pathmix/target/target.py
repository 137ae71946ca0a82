"""The density of a straight-line program as a function of one flat unconstrained vector.

Everything that is not structure (data, pinned values, bounds) travels in `Arguments`, so that
targets with the same `structure` can run the same compiled code.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pathmix.program.canonical import canonical
from pathmix.program.dependence import Sites
from pathmix.program.graph import Graph
from pathmix.program.slp import Flaw, Site, StraightLineProgram
from pathmix.program.values import SiteRows
from pathmix.regions.region import Region
from pathmix.target.coordinates import Coordinates, MapArguments, kinds, make_coordinates
from pathmix.target.inert import Inert, inert_elements
from pathmix.target.signs import UNKNOWN, Sign, sign_at, sign_between
from pathmix.target.switches import evaluate_marked

CALL_BYTES = 2**26  # arrays that one compiled call works on at once stay below this


class Arguments(NamedTuple):
    """What a target computes with: what each graph captured, and the map from the flat vector."""

    density: tuple[jax.Array, ...]
    minibatch: tuple[jax.Array, ...]
    conditions: tuple[jax.Array, ...]
    map: MapArguments


class Graphs(NamedTuple):
    """The parts of a straight-line program's graph, each with what it needs and no more.

    In canonical form: they take the free sites, in the order of the target.
    """

    density: Graph  # log-prior, log-likelihood, live conditions
    minibatch: Graph | None  # log-prior and log-likelihood on a minibatch
    conditions: Graph | None  # live conditions, for minibatches


class Density(NamedTuple):
    """One point's log-densities; log_det belongs to the map from the unconstrained vector."""

    log_prior: jax.Array
    log_likelihood: jax.Array
    log_det: jax.Array
    inside: jax.Array

    @property
    def log_joint(self) -> jax.Array:
        """log gamma, in the coordinates of the program."""
        return self.log_prior + self.log_likelihood


class Outcome(NamedTuple):
    """What a vector stands for; `Target.named` knows the names, which compiled code does not."""

    free: list[jax.Array]
    deterministics: list[jax.Array]
    inside: jax.Array


@dataclass(frozen=True, eq=False)
class Target:
    slp: StraightLineProgram
    region: Region
    coordinates: Coordinates
    graphs: Graphs
    arguments: Arguments
    inert: Inert  # elements that the vector leaves out
    inert_draws: SiteRows  # of the sites that have some, from the prior
    order: tuple[int, ...]  # the free sites among all, in canonical order

    @property
    def dim(self) -> int:
        return self.coordinates.dim

    @property
    def sites(self) -> tuple[Site, ...]:
        """The free sites in canonical order: graphs and coordinates number them so."""
        return self.coordinates.sites

    @cached_property
    def flaw(self) -> Flaw | None:
        """Why the path has no density, whatever its free sites are."""
        known = self.slp.facts.flaw
        if known is not None or not any(self.graphs.density.is_known_zero(part) for part in (0, 1)):
            return known
        return Flaw(
            "zero",
            "Whatever the values of its sites are, the density is zero: an observed site or a factor has a "
            "log-density of -inf on this path.",
        )

    @cached_property
    def structure(self) -> tuple[Any, ...]:
        """Equal for targets that can run the same compiled code."""
        return (
            tuple(None if graph is None else graph.structure for graph in self.graphs),
            len(self.region.live),
            tuple(segment.structure for segment in self.coordinates.segments),
            self.coordinates.kept,
            tuple((site.shape, str(site.dtype)) for site in self.sites),
            jax.tree.structure(self.arguments),
            tuple((np.shape(leaf), str(leaf.dtype)) for leaf in jax.tree.leaves(self.arguments)),
        )

    @cached_property
    def site_graph(self) -> Graph:
        """Computes live conditions and deterministic sites; of use only for draws."""
        live = [self.slp.FIRST_CONDITION + index for index in self.region.live]
        slots = [*live, *(slot for _, slot in self.slp.deterministics)]
        return _part(self.slp, slots, self.order)

    @cached_property
    def site_structure(self) -> tuple[Any, ...]:
        """Equal for targets that can also run the same compiled code for their deterministic sites."""
        return (*self.structure, self.site_graph.structure)

    def rows_at_once(self, count: int) -> int:
        """Of how many rows one compiled call computes densities side by side."""
        fitting = CALL_BYTES // max(self.graphs.density.footprint, 8 * self.dim)
        return max(1, min(count, fitting))

    def columns(self, draws: SiteRows) -> list[np.ndarray]:
        """The values of the free sites."""
        return [np.asarray(draws[site.name], site.dtype) for site in self.sites]

    def unconstrain(self, values: Sequence[jax.Array], arguments: Arguments) -> jax.Array:
        """The flat vector that stands for the values of the free sites."""
        return self.coordinates.unconstrain(values, arguments.map)

    def density(
        self, u: jax.Array, arguments: Arguments, indices: Sequence[jax.Array] | None = None
    ) -> Density:
        """The densities at a flat vector; with `indices`, of a minibatch."""
        values, log_det = self.coordinates.constrain(u, arguments.map)
        if indices is not None and self.graphs.minibatch is not None:
            log_prior, log_likelihood = self.graphs.minibatch.with_slope(
                arguments.minibatch, [*values, *indices]
            )
            assert self.graphs.conditions is not None
            # Which path a run follows is a matter of all the data.
            conditions = self.graphs.conditions(arguments.conditions, values)
        else:
            log_prior, log_likelihood, *conditions = self.graphs.density.with_slope(arguments.density, values)
        return Density(log_prior, log_likelihood, log_det, _all(conditions))

    def marked_density(self, u: jax.Array, arguments: Arguments) -> tuple[Density, jax.Array]:
        """The densities at a flat vector, and the marks of the switches on the way (see `switches.py`)."""
        values, log_det = self.coordinates.constrain(u, arguments.map)
        outputs, marks = evaluate_marked(self.graphs.density, arguments.density, values, self.signs)
        log_prior, log_likelihood, *conditions = outputs
        stacked = jnp.concatenate([row for row, _ in marks]) if marks else jnp.zeros(0, jnp.uint32)
        return Density(log_prior, log_likelihood, log_det, _all(conditions)), stacked

    @cached_property
    def signs(self) -> tuple[Sign, ...]:
        """Of what the density is computed from. With the structure, they tell which switches there are."""
        arrays = map(sign_at, self.arguments.density)
        return (
            *arrays,
            *(UNKNOWN if site.bounds is None else sign_between(*site.bounds) for site in self.sites),
        )

    @cached_property
    def switches(self) -> list[Sites]:
        """The sites that each switch of the density depends on."""
        found: list[Sites] = []

        def trace(arguments: Arguments, values: list[jax.Array]) -> None:
            marks = evaluate_marked(self.graphs.density, arguments.density, values, self.signs)[1]
            found.extend(sites for row, sites in marks for _ in range(row.size))

        values = [jax.ShapeDtypeStruct(site.shape, site.dtype) for site in self.sites]
        jax.eval_shape(trace, self.arguments, values)
        return found

    def coordinates_of(self, sites: Sites) -> tuple[bool, ...]:
        """The coordinates that move the values of sites: their own, and those their supports depend on."""
        while (wider := sites | self.coordinates.supporting(sites)) != sites:
            sites = wider
        slices = dict(zip(self.coordinates.order, self.coordinates.slices, strict=True))
        moved = {i for site in sites for i in range(*slices[site])}
        return tuple(i in moved for i in range(self.dim))

    def log_joint(self, values: Sequence[jax.Array], arguments: Arguments) -> jax.Array:
        """log gamma at the values of the free sites."""
        log_prior, log_likelihood, *_ = self.graphs.density(arguments.density, values)
        return log_prior + log_likelihood

    def outcome(self, u: jax.Array, arguments: Arguments, consts: tuple[jax.Array, ...]) -> Outcome:
        """The sites at a vector, and whether it is inside; `consts` are those of the site graph."""
        values, _ = self.coordinates.constrain(u, arguments.map)
        outputs = [jnp.asarray(output) for output in self.site_graph(consts, values)]
        live = len(self.region.live)
        return Outcome(values, outputs[live:], _all(outputs[:live]))

    def named(self, outcome: Outcome) -> SiteRows:
        """Latent and deterministic sites by name, for rows of outcomes."""
        count = len(outcome.inside)
        free = {site.name: np.asarray(v) for site, v in zip(self.sites, outcome.free, strict=True)}
        found = {
            site.name: np.repeat(site.pinned[None], count, axis=0)
            if site.pinned is not None
            else free[site.name]
            for site in self.slp.sites
            if not site.is_summed
        }
        for (name, _), value in zip(self.slp.deterministics, outcome.deterministics, strict=True):
            found[name] = np.asarray(value)
        return found


def make_target(slp: StraightLineProgram, region: Region, draws: dict[str, np.ndarray]) -> Target:
    """The target of a path, given prior draws inside its region."""
    live = [slp.FIRST_CONDITION + index for index in region.live]
    wanted = [slp.LOG_PRIOR, slp.LOG_LIKELIHOOD, *live]
    pinned = slp.known
    density, order = canonical(slp.graph.outputs(wanted), pinned, kinds(slp, region))

    minibatch = None
    if slp.minibatch is not None:
        plates = range(len(pinned), len(pinned) + len(slp.plates))
        whole = slp.minibatch.outputs(wanted[:2])
        minibatch = canonical(whole, [*pinned, *(None for _ in plates)], order=[*order, *plates]).graph
    graphs = Graphs(
        density=density,
        minibatch=minibatch,
        conditions=None if minibatch is None else _part(slp, live, order),
    )
    inert = inert_elements(slp, draws)
    coordinates, map_arguments = make_coordinates(slp, region, draws, inert, order)
    arguments = Arguments(
        density=graphs.density.consts,
        minibatch=() if graphs.minibatch is None else graphs.minibatch.consts,
        conditions=() if graphs.conditions is None else graphs.conditions.consts,
        map=map_arguments,
    )
    inert_draws = {name: draws[name] for name in inert}
    return Target(slp, region, coordinates, graphs, arguments, inert, inert_draws, order)


def _part(slp: StraightLineProgram, outputs: Sequence[int], order: Sequence[int]) -> Graph:
    """The graph of some outputs, of the free sites in an order."""
    return canonical(slp.graph.outputs(outputs), slp.known, order=order).graph


def _all(conditions: Sequence[jax.Array]) -> jax.Array:
    return jnp.all(jnp.stack(conditions)) if conditions else jnp.array(True)
