"""What compiled code computes for a target: a density by its graphs, of a flat vector by its coordinates.

Numbers come as arguments, so targets with the same `structure` can do with the formula of one of them. It
knows neither the program nor its data.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from pathmix.program.graph import Graph
from pathmix.program.slp import Site
from pathmix.target.coordinates import Coordinates, MapArguments
from pathmix.target.signs import Sign
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


@dataclass(frozen=True, eq=False)
class Formula:
    graphs: Graphs
    coordinates: Coordinates

    @property
    def dim(self) -> int:
        return self.coordinates.dim

    @property
    def sites(self) -> tuple[Site, ...]:
        """The free sites in canonical order: graphs and coordinates number them so."""
        return self.coordinates.sites

    def rows_at_once(self, count: int) -> int:
        """Of how many rows one compiled call computes densities side by side."""
        fitting = CALL_BYTES // max(self.graphs.density.footprint, 8 * self.dim)
        return max(1, min(count, fitting))

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
        return Density(log_prior, log_likelihood, log_det, all_true(conditions))

    def marked_density(
        self, u: jax.Array, arguments: Arguments, signs: Sequence[Sign]
    ) -> tuple[Density, jax.Array]:
        """The densities at a flat vector, and the marks of the switches on the way (see `switches.py`)."""
        values, log_det = self.coordinates.constrain(u, arguments.map)
        outputs, marks = evaluate_marked(self.graphs.density, arguments.density, values, signs)
        log_prior, log_likelihood, *conditions = outputs
        stacked = jnp.concatenate([row for row, _ in marks]) if marks else jnp.zeros(0, jnp.uint32)
        return Density(log_prior, log_likelihood, log_det, all_true(conditions)), stacked


def all_true(conditions: Sequence[Any]) -> jax.Array:
    return jnp.all(jnp.stack(conditions)) if conditions else jnp.array(True)
