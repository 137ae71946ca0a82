"""Layered adaptive importance sampling driven by parallel chains (PI-MAIS; Martino et al. 2017).

Around the state of every chain lies a normal proposal; its draws are weighted against the mixture of
the proposals of all chains at the same time. Given the chains, the mean weight is an unbiased
estimate of the evidence, whether or not the chains have converged.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pathmix.engine.batching import in_chunks, over_rows
from pathmix.methods.dcc.kernels.base import log_density
from pathmix.methods.dcc.spread import Factors
from pathmix.posterior.weights import logsumexp
from pathmix.target.formula import Arguments
from pathmix.target.target import Target


def make_log_weights(target: Target, proposals: int, chunk: int) -> Callable[..., jax.Array]:
    """(positions, factors, noise, arguments) -> log-weights of `proposals` draws around every state."""

    def log_weights(
        positions: jax.Array, factors: Factors, noise: jax.Array, arguments: Arguments
    ) -> jax.Array:
        chains, samples, dim = positions.shape
        shape = (samples, chains, proposals, dim)
        centres = jnp.swapaxes(positions, 0, 1)
        # Neighbours, in time and among chains, take turns with the wide and the narrow proposal.
        turns = jnp.add.outer(jnp.arange(samples), jnp.arange(chains)) % 2
        steps = noise[: math.prod(shape)].reshape(shape)
        wide, narrow = (_scaled(steps, root) for root in factors.roots)
        offsets = jnp.where((turns == 0)[..., None, None], wide, narrow)
        draws = (centres[:, :, None] + offsets).reshape(samples, chains * proposals, dim)
        log_q = jax.vmap(partial(_log_mixture, factors))(draws, centres, turns)
        rows = draws.reshape(-1, dim)
        found = in_chunks(over_rows(lambda u: log_density(target, u, arguments)), rows, chunk)
        return found - log_q.reshape(-1)

    return log_weights


def _log_mixture(factors: Factors, draws: jax.Array, centres: jax.Array, turns: jax.Array) -> jax.Array:
    """The density of the mixture of all proposals of one time."""

    def log_normals(inverse: jax.Array, log_det: jax.Array) -> jax.Array:
        standard, around = _scaled(draws, inverse), _scaled(centres, inverse)
        squares = jnp.sum(jnp.square(standard[:, None] - around), axis=-1)
        return -squares / 2 - log_det - draws.shape[1] / 2 * jnp.log(2 * jnp.pi)

    wide, narrow = (log_normals(*pair) for pair in zip(factors.inverses, factors.log_dets, strict=True))
    logs = jnp.where(turns == 0, wide, narrow)
    return jax.scipy.special.logsumexp(logs, axis=1) - jnp.log(len(centres))


def _scaled(vectors: jax.Array, factor: jax.Array) -> jax.Array:
    """Times a matrix, or a diagonal one given as a vector."""
    return vectors * factor if factor.ndim == 1 else vectors @ factor.T


class Evidence(NamedTuple):
    """What is kept of all weights of a path so far."""

    draws: int = 0
    broken: int = 0  # with a density that is NaN; they count as zero
    infinite: int = 0
    log_sum: float = -np.inf
    log_sum_squares: float = -np.inf
    positive: int = 0
    sum_logs: float = 0.0  # of the positive ones
    sum_square_logs: float = 0.0
    largest: float = -np.inf

    def add(self, log_weights: Any) -> "Evidence":
        logs = np.asarray(log_weights, float)
        finite = logs[np.isfinite(logs)]
        return Evidence(
            draws=self.draws + len(logs),
            broken=self.broken + int(np.isnan(logs).sum()),
            infinite=self.infinite + int(np.isposinf(logs).sum()),
            log_sum=float(np.logaddexp(self.log_sum, logsumexp(finite.tolist()))),
            log_sum_squares=float(np.logaddexp(self.log_sum_squares, logsumexp((2 * finite).tolist()))),
            positive=self.positive + len(finite),
            sum_logs=self.sum_logs + float(finite.sum()),
            sum_square_logs=self.sum_square_logs + float(np.square(finite).sum()),
            largest=max(self.largest, float(np.max(finite, initial=-np.inf))),
        )

    @property
    def log_mean(self) -> float:
        """log Z_k, as estimated by all draws."""
        return self.log_sum - float(np.log(self.draws)) if self.draws else -np.inf

    @property
    def effective_draws(self) -> float:
        """How many equal weights would be as good as these."""
        return float(np.exp(2 * self.log_sum - self.log_sum_squares)) if self.positive else 0.0

    @property
    def log_variance(self) -> float:
        """Logarithm of the weights' variance."""
        square = 2 * self.log_mean
        second = self.log_sum_squares - float(np.log(max(self.draws, 1)))
        return second + float(np.log1p(-np.exp(square - second))) if second > square else -np.inf
