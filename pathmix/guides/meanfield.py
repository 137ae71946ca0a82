"""Independent normals."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pathmix.guides.base import moments


class MeanFieldParams(NamedTuple):
    loc: jax.Array
    log_scale: jax.Array


@dataclass(frozen=True)
class MeanField:
    """A normal for every coordinate: the paper's guide, and the default."""

    def noise_size(self, dim: int) -> int:
        return dim

    def init(self, draws: np.ndarray) -> MeanFieldParams:
        loc, scale = moments(draws)
        return MeanFieldParams(jnp.asarray(loc), jnp.asarray(np.log(scale)))

    def centre(self, params: MeanFieldParams) -> jax.Array:
        return params.loc

    def sample(self, params: MeanFieldParams, noise: jax.Array) -> jax.Array:
        return params.loc + jnp.exp(params.log_scale) * noise

    def log_prob(self, params: MeanFieldParams, u: jax.Array) -> jax.Array:
        return jnp.sum(_log_probs(params, u))

    def sample_part(self, params: MeanFieldParams, noise: jax.Array, part: tuple[bool, ...]) -> jax.Array:
        return self.sample(params, noise)

    def log_prob_part(self, params: MeanFieldParams, u: jax.Array, part: tuple[bool, ...]) -> jax.Array:
        return jnp.sum(_log_probs(params, u) * np.array(part))

    def complete(
        self, params: MeanFieldParams, u: jax.Array, noise: jax.Array, part: tuple[bool, ...]
    ) -> jax.Array:
        return jnp.where(np.array(part), u, self.sample(params, noise))


def _log_probs(params: MeanFieldParams, u: jax.Array) -> jax.Array:
    standard = (u - params.loc) * jnp.exp(-params.log_scale)
    return jax.scipy.stats.norm.logpdf(standard) - params.log_scale
