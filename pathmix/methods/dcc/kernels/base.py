"""What a Markov kernel is: two pure functions that move all chains of a path at once."""

from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np

from pathmix.guides.base import moments
from pathmix.target.coordinates import Coordinates
from pathmix.target.formula import Arguments
from pathmix.target.layout import layout_of
from pathmix.target.target import Target

State = Any


class PriorScales(NamedTuple):
    """What the prior says about the coordinates of the flat vector."""

    scales: jax.Array  # standard deviation of prior draws of the path
    sites: jax.Array  # which free site a coordinate belongs to, counted from 0


class Moves(NamedTuple):
    """What chains did in one call."""

    positions: jax.Array  # (chains, samples, dim)
    acceptance: jax.Array  # mean over the moves that gave samples
    evaluations: jax.Array  # of the density, warm-up included


@runtime_checkable
class Kernel(Protocol):
    """A way to move chains. Members are hashable (frozen dataclasses): equal kernels share compiled code."""

    @property
    def burn_in(self) -> float:
        """Share of the samples, the first ones, that the posterior leaves out."""
        ...

    def noise_size(self, dim: int) -> int:
        """How many standard normals a chain in R^dim is to be given for a sample."""
        ...

    def init(
        self, target: Target, positions: jax.Array, prior: PriorScales, key: jax.Array, arguments: Arguments
    ) -> State:
        """Chains at rest, one per row of `positions`."""
        ...

    def advance(
        self, target: Target, state: State, noise: jax.Array, samples: int, arguments: Arguments
    ) -> tuple[State, Moves]:
        """Take samples, after a warm-up if the chains are still at rest and need one."""
        ...


def log_density(target: Target, u: jax.Array, arguments: Arguments) -> jax.Array:
    """Log gamma_k of one flat vector, with the map's log-determinant: it integrates to Z_k."""
    found = target.formula.density(u, arguments)
    return jnp.where(found.inside, found.log_joint + found.log_det, -jnp.inf)


def make_prior_scales(coordinates: Coordinates, vectors: np.ndarray) -> PriorScales:
    """What prior draws of a path, one per row, say about its coordinates."""
    owners = np.array(layout_of(coordinates).owners, int)
    return PriorScales(jnp.asarray(moments(vectors)[1]), jnp.asarray(owners))
