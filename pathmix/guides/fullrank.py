"""One normal with a full covariance."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular

from pathmix.guides.base import covariance, moments


class FullRankParams(NamedTuple):
    loc: jax.Array
    log_diagonal: jax.Array  # of the Cholesky factor
    below: jax.Array  # the factor's strictly lower part; the rest of the matrix is not used


@dataclass(frozen=True)
class FullRank:
    """A multivariate normal: exact for linear Gaussian paths."""

    def noise_size(self, dim: int) -> int:
        return dim

    def init(self, draws: np.ndarray) -> FullRankParams:
        loc, _ = moments(draws)
        factor = np.linalg.cholesky(covariance(draws))
        return FullRankParams(
            jnp.asarray(loc), jnp.asarray(np.log(np.diag(factor))), jnp.asarray(np.tril(factor, -1))
        )

    def sample(self, params: FullRankParams, noise: jax.Array) -> jax.Array:
        return params.loc + _factor(params) @ noise

    def log_prob(self, params: FullRankParams, u: jax.Array) -> jax.Array:
        standard = solve_triangular(_factor(params), u - params.loc, lower=True)
        return jnp.sum(jax.scipy.stats.norm.logpdf(standard) - params.log_diagonal)


def _factor(params: FullRankParams) -> jax.Array:
    return jnp.tril(params.below, -1) + jnp.diag(jnp.exp(params.log_diagonal))
