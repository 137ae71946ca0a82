"""Independent normals."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pathmix.guides.base import moments


class MeanFieldParams(NamedTuple):
    """Means, and logarithms of standard deviations."""

    loc: jax.Array
    log_scale: jax.Array


@dataclass(frozen=True)
class MeanField:
    """A normal for every coordinate: the paper's guide, and the default."""

    def noise_size(self, dim: int) -> int:
        """How many standard normals one draw needs."""
        return dim

    def init(self, draws: np.ndarray) -> MeanFieldParams:
        """Match the moments of the draws."""
        loc, scale = moments(draws)
        return MeanFieldParams(jnp.asarray(loc), jnp.asarray(np.log(scale)))

    def centre(self, params: MeanFieldParams) -> jax.Array:
        """The mean."""
        return params.loc

    def sample(self, params: MeanFieldParams, noise: jax.Array) -> jax.Array:
        """One draw, from standard normal noise."""
        return params.loc + jnp.exp(params.log_scale) * noise

    def log_prob(self, params: MeanFieldParams, u: jax.Array) -> jax.Array:
        """Log-density at one point."""
        return jnp.sum(_log_probs(params, u))

    def sample_part(self, params: MeanFieldParams, noise: jax.Array, part: tuple[bool, ...]) -> jax.Array:
        """A draw of which only the coordinates of the part count."""
        return self.sample(params, noise)

    def log_prob_part(self, params: MeanFieldParams, u: jax.Array, part: tuple[bool, ...]) -> jax.Array:
        """Log-density of the part alone."""
        return jnp.sum(_log_probs(params, u) * np.array(part))

    def complete(
        self, params: MeanFieldParams, u: jax.Array, noise: jax.Array, part: tuple[bool, ...]
    ) -> jax.Array:
        """The rest drawn given the part of u."""
        return jnp.where(np.array(part), u, self.sample(params, noise))


def _log_probs(params: MeanFieldParams, u: jax.Array) -> jax.Array:
    standard = (u - params.loc) * jnp.exp(-params.log_scale)
    return jax.scipy.stats.norm.logpdf(standard) - params.log_scale
