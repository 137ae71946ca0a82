"""A straight-line program as a density of one flat unconstrained vector.

Everything that is not structure (data, pinned values, bounds) travels in `Arguments`, so that
targets with the same `structure` can run the same compiled code, which their `formula` is.
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
from pathmix.target.coordinates import Coordinates, kinds, make_coordinates
from pathmix.target.formula import Arguments, Formula, Graphs, all_true
from pathmix.target.inert import Inert, inert_elements
from pathmix.target.signs import UNKNOWN, Sign, sign_at, sign_between
from pathmix.target.switches import evaluate_marked


class Outcome(NamedTuple):
    """What a vector stands for; `Target.named` knows the names, which compiled code does not."""

    free: list[jax.Array]
    deterministics: list[jax.Array]
    inside: jax.Array


@dataclass(frozen=True, eq=False)
class Target:
    slp: StraightLineProgram
    region: Region
    formula: Formula
    arguments: Arguments
    inert: Inert  # elements that the vector leaves out
    inert_draws: SiteRows  # of the sites that have some, from the prior
    order: tuple[int, ...]  # the free sites among all, in canonical order

    @property
    def graphs(self) -> Graphs:
        return self.formula.graphs

    @property
    def coordinates(self) -> Coordinates:
        return self.formula.coordinates

    @property
    def dim(self) -> int:
        return self.formula.dim

    @property
    def sites(self) -> tuple[Site, ...]:
        """The free sites in canonical order."""
        return self.formula.sites

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

    def columns(self, draws: SiteRows) -> list[np.ndarray]:
        """The values of the free sites."""
        return [np.asarray(draws[site.name], site.dtype) for site in self.sites]

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
        return Outcome(values, outputs[live:], all_true(outputs[:live]))

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
    return Target(slp, region, Formula(graphs, coordinates), arguments, inert, inert_draws, order)


def _part(slp: StraightLineProgram, outputs: Sequence[int], order: Sequence[int]) -> Graph:
    """The graph of some outputs, of the free sites in an order."""
    return canonical(slp.graph.outputs(outputs), slp.known, order=order).graph
