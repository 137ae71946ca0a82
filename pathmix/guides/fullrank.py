"""One normal with a full covariance."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular

from pathmix.guides.base import covariance, moments
from pathmix.guides.rounding import kept_by_rounding


class FullRankParams(NamedTuple):
    """A mean and the Cholesky factor of the covariance."""

    loc: jax.Array
    log_diagonal: jax.Array  # of the Cholesky factor
    below: jax.Array  # the factor's strictly lower part; the rest of the matrix is not used


@dataclass(frozen=True)
class FullRank:
    """A multivariate normal: exact for linear Gaussian paths."""

    def noise_size(self, dim: int) -> int:
        """How many standard normals one draw needs."""
        return dim

    def init(self, draws: np.ndarray) -> FullRankParams:
        """Match the moments of the draws."""
        loc, _ = moments(draws)
        factor = np.linalg.cholesky(covariance(draws))
        return FullRankParams(
            jnp.asarray(loc), jnp.asarray(np.log(np.diag(factor))), jnp.asarray(np.tril(factor, -1))
        )

    def centre(self, params: FullRankParams) -> jax.Array:
        """The mean."""
        return params.loc

    def sample(self, params: FullRankParams, noise: jax.Array) -> jax.Array:
        """One draw, from standard normal noise."""
        return params.loc + _factor(params) @ noise

    def log_prob(self, params: FullRankParams, u: jax.Array) -> jax.Array:
        """Log-density at one point."""

        def density(point: jax.Array) -> jax.Array:
            return jnp.sum(jax.scipy.stats.norm.logpdf(self.standard(params, point)) - params.log_diagonal)

        return kept_by_rounding(density, u, params.loc)

    def standard(self, params: FullRankParams, u: jax.Array) -> jax.Array:
        """The noise that gives a point."""
        return solve_triangular(_factor(params), u - params.loc, lower=True)

    def sample_part(self, params: FullRankParams, noise: jax.Array, part: tuple[bool, ...]) -> jax.Array:
        """A draw of which only the coordinates of the part count."""
        order, factor, count = _part_first(params, part)
        return params.loc.at[order[:count]].add(factor[:count, :count] @ noise[:count])

    def log_prob_part(self, params: FullRankParams, u: jax.Array, part: tuple[bool, ...]) -> jax.Array:
        """Log-density of the part alone."""
        _, factor, count = _part_first(params, part)
        standard = _standard_part(params, u, part)
        return jnp.sum(jax.scipy.stats.norm.logpdf(standard) - jnp.log(jnp.diag(factor)[:count]))

    def complete(
        self, params: FullRankParams, u: jax.Array, noise: jax.Array, part: tuple[bool, ...]
    ) -> jax.Array:
        """The rest drawn given the part of u."""
        order, factor, count = _part_first(params, part)
        standard = jnp.concatenate([_standard_part(params, u, part), noise[count:]])
        rest = order[count:]
        return u.at[rest].set(params.loc[rest] + factor[count:] @ standard)


def _part_first(params: FullRankParams, part: tuple[bool, ...]) -> tuple[np.ndarray, jax.Array, int]:
    """An order with the part's coordinates first, the Cholesky factor in it, and how many they are."""
    order = np.argsort(~np.array(part), kind="stable")
    rows = _factor(params)[order]
    return order, jnp.linalg.cholesky(rows @ rows.T), sum(part)


def _standard_part(params: FullRankParams, u: jax.Array, part: tuple[bool, ...]) -> jax.Array:
    """The noise that gives the part of u."""
    order, factor, count = _part_first(params, part)
    first = order[:count]
    return solve_triangular(factor[:count, :count], u[first] - params.loc[first], lower=True)


def _factor(params: FullRankParams) -> jax.Array:
    return jnp.tril(params.below, -1) + jnp.diag(jnp.exp(params.log_diagonal))
