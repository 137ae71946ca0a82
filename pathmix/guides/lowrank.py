"""A normal whose covariance is a diagonal plus a few directions."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsp
import numpy as np

from pathmix.errors import OptionError
from pathmix.guides.base import covariance, moments
from pathmix.guides.rounding import kept_by_rounding


class LowRankParams(NamedTuple):
    """A mean and the parts of the covariance."""

    loc: jax.Array
    log_scale: jax.Array  # of the diagonal part
    directions: jax.Array  # dim x rank


@dataclass(frozen=True)
class LowRank:
    """Covariance D + F F^T, with F of the given rank: for correlated paths of high dimension."""

    rank: int = 5

    def __post_init__(self) -> None:
        if not isinstance(self.rank, int) or self.rank < 1:
            raise OptionError(f"LowRank needs a rank of at least 1, not {self.rank!r}.")

    def noise_size(self, dim: int) -> int:
        """How many standard normals one draw needs."""
        return dim + min(self.rank, dim)

    def init(self, draws: np.ndarray) -> LowRankParams:
        """Match the moments of the draws."""
        loc, _ = moments(draws)
        full = covariance(draws)
        rank = min(self.rank, draws.shape[1])
        values, vectors = np.linalg.eigh(full)
        # Half of the leading variance goes to the directions: at zero they would get no gradient.
        directions = vectors[:, ::-1][:, :rank] * np.sqrt(values[::-1][:rank] / 2)
        rest = np.diag(full) - np.sum(directions**2, axis=1)
        return LowRankParams(jnp.asarray(loc), jnp.asarray(np.log(rest) / 2), jnp.asarray(directions))

    def centre(self, params: LowRankParams) -> jax.Array:
        """The mean."""
        return params.loc

    def sample(self, params: LowRankParams, noise: jax.Array) -> jax.Array:
        """One draw, from standard normal noise."""
        dim = params.loc.shape[0]
        along = params.directions @ noise[dim:]
        return params.loc + jnp.exp(params.log_scale) * noise[:dim] + along

    def log_prob(self, params: LowRankParams, u: jax.Array) -> jax.Array:
        """Log-density at one point."""
        scale = jnp.exp(params.log_scale)
        inwards = params.directions / scale[:, None]
        factor = jnp.linalg.cholesky(jnp.eye(inwards.shape[1]) + inwards.T @ inwards)
        log_det = jnp.sum(params.log_scale) + jnp.sum(jnp.log(jnp.diagonal(factor)))

        def density(u: jax.Array) -> jax.Array:
            off = (u - params.loc) / scale
            along = jsp.cho_solve((factor, True), inwards.T @ off)
            # As the least sum of squares, to which a wrong `along` matters little: nothing large cancels.
            distance = jnp.sum((off - inwards @ along) ** 2) + jnp.sum(along**2)
            return -0.5 * (distance + u.shape[0] * np.log(2 * np.pi)) - log_det

        return kept_by_rounding(density, u, params.loc)
