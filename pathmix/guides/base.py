"""What a variational family is: pure functions on R^d over a pytree of parameters."""

from typing import Any, Protocol, runtime_checkable

import jax
import numpy as np

from pathmix.target.layout import Layout

Params = Any


@runtime_checkable
class Guide(Protocol):
    """A family of distributions on R^d that are pushed-forward standard normals.

    Members are hashable (frozen dataclasses): equal guides share compiled code.
    """

    def noise_size(self, dim: int) -> int:
        """How many standard normals one draw in R^dim needs."""
        ...

    def init(self, draws: np.ndarray) -> Params:
        """Parameters closest in forward KL to the given draws, one per row (App. C.1)."""
        ...

    def centre(self, params: Params) -> jax.Array:
        """The point in the middle: the mean, where there is one."""
        ...

    def sample(self, params: Params, noise: jax.Array) -> jax.Array:
        """One draw, from standard normal noise; differentiable in the parameters."""
        ...

    def log_prob(self, params: Params, u: jax.Array) -> jax.Array:
        """Log-density at one point."""
        ...


@runtime_checkable
class StructuredGuide(Protocol):
    """A guide that treats sites differently: every path gets one that knows where its sites stand."""

    def for_layout(self, layout: Layout) -> Guide:
        """The guide of a path whose vector has this layout."""
        ...


@runtime_checkable
class SplitGuide(Guide, Protocol):
    """A guide whose coordinates can be drawn in two steps: some of them, then the rest given those.

    `part` says for each coordinate whether it belongs to the first step. Training needs it where the
    density jumps as some coordinates move; other guides are then trained by the score function alone.
    """

    def sample_part(self, params: Params, noise: jax.Array, part: tuple[bool, ...]) -> jax.Array:
        """A draw of which only the coordinates of the part count."""
        ...

    def log_prob_part(self, params: Params, u: jax.Array, part: tuple[bool, ...]) -> jax.Array:
        """Log-density of the part alone."""
        ...

    def complete(self, params: Params, u: jax.Array, noise: jax.Array, part: tuple[bool, ...]) -> jax.Array:
        """The rest drawn given the part of u, from the noise that `sample_part` did not use."""
        ...


def moments(draws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of the usable rows; unit scale where they cannot tell one."""
    usable = draws[np.all(np.isfinite(draws), axis=1)]
    if len(usable) == 0:
        return np.zeros(draws.shape[1]), np.ones(draws.shape[1])
    scale = usable.std(axis=0)
    return usable.mean(axis=0), np.where(scale > 0, scale, 1.0)


def covariance(draws: np.ndarray) -> np.ndarray:
    """Covariance of the usable rows; its diagonal only, where there are too few rows to fill it."""
    usable = draws[np.all(np.isfinite(draws), axis=1)]
    _, scale = moments(draws)
    dim = draws.shape[1]
    if len(usable) <= 2 * dim:
        return np.diag(scale**2)
    centred = usable - usable.mean(axis=0)
    full = centred.T @ centred / len(usable)
    # A hair of the diagonal keeps it positive definite when sites are copies of each other.
    return full + 1e-9 * np.diag(scale**2)
