"""Random-walk lightweight Metropolis-Hastings: one site at a time."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.special import ndtr

from pathmix.checks import check_positive_number
from pathmix.engine.batching import over_rows
from pathmix.methods.dcc.kernels.base import Moves, PriorScales, log_density
from pathmix.target.formula import Arguments
from pathmix.target.target import Target


class Walkers(NamedTuple):
    """The chains of a path."""

    positions: jax.Array  # (chains, dim)
    log_densities: jax.Array  # (chains,)
    prior: PriorScales


@dataclass(frozen=True)
class RandomWalk:
    """Perturb one site, chosen at random, and accept or reject (Le 2016; the paper's choice for DCC).

    The perturbation is normal in unconstrained coordinates, `step` times as wide as the prior of the
    path. Sites of many elements move all of them, each by less, so that the distance stays the same.
    A chain starts at a draw of the prior and finds its way in small steps, so the first half of its
    samples is left out of the posterior.

    Examples:
        >>> RandomWalk(step=0.5).step
        0.5
    """

    step: float = 1.0

    def __post_init__(self) -> None:
        check_positive_number("RandomWalk(step=...)", self.step)

    @property
    def burn_in(self) -> float:
        """Half: chains find their way in small steps."""
        return 0.5

    def noise_size(self, dim: int) -> int:
        """How many standard normals a sample needs."""
        return dim + 2

    def init(
        self, target: Target, positions: jax.Array, prior: PriorScales, key: jax.Array, arguments: Arguments
    ) -> Walkers:
        """Chains at these positions."""
        log_densities = over_rows(lambda u: log_density(target, u, arguments))(positions)
        return Walkers(positions, log_densities, prior)

    def advance(
        self, target: Target, state: Walkers, noise: jax.Array, samples: int, arguments: Arguments
    ) -> tuple[Walkers, Moves]:
        """More samples of each chain, one site after another."""
        chains, dim = state.positions.shape
        scales, sites = state.prior
        count = jnp.max(sites) + 1
        sizes = jnp.sum(sites[:, None] == sites, axis=1)
        widths = self.step * scales / jnp.sqrt(sizes.astype(scales.dtype))
        density = over_rows(lambda u: log_density(target, u, arguments))

        def move(walkers: Walkers, noise: jax.Array) -> tuple[Walkers, tuple[jax.Array, jax.Array]]:
            # Two of the normals become uniform: one picks a site, the other one judges.
            pick, judge = ndtr(noise[:, 0]), ndtr(noise[:, 1])
            chosen = jnp.minimum(jnp.floor(pick * count), count - 1)
            step = jnp.where(sites == chosen[:, None], widths * noise[:, 2:], 0)
            proposed = walkers.positions + step
            found = density(proposed)
            accepted = jnp.log(judge) < found - walkers.log_densities  # never where the density is NaN
            positions = jnp.where(accepted[:, None], proposed, walkers.positions)
            log_densities = jnp.where(accepted, found, walkers.log_densities)
            return Walkers(positions, log_densities, walkers.prior), (positions, accepted)

        shape = (samples, chains, self.noise_size(dim))
        state, (positions, accepted) = jax.lax.scan(move, state, noise[: math.prod(shape)].reshape(shape))
        return state, Moves(
            jnp.swapaxes(positions, 0, 1),
            jnp.mean(accepted, dtype=scales.dtype),
            jnp.asarray(samples * chains),
        )
