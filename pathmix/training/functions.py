"""The functions of a path that are compiled besides its training loop. All take a batch."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from pathmix.batching import in_chunks, over_rows
from pathmix.guides.base import Guide
from pathmix.target import Target

Compilable = Callable[..., Any]


def make_unconstrain(target: Target) -> Compilable:
    """(values, arguments) -> unconstrained vectors of prior draws."""
    return lambda values, arguments: over_rows(lambda *row: target.unconstrain(row, arguments))(*values)


def make_densities(target: Target, chunk: int) -> Compilable:
    """((vectors,), arguments) -> log gamma of unconstrained vectors, and of the sites they stand for.

    The first is -inf outside the region. A chunk is computed at a time.
    """

    def densities(rows: tuple[jax.Array], arguments: Any) -> Any:
        def one(u: jax.Array) -> Any:
            found = target.density(u, arguments)
            return jnp.where(found.inside, found.log_joint + found.log_det, -jnp.inf), found.log_joint

        return in_chunks(over_rows(one), rows[0], chunk)

    return densities


def make_evaluate(target: Target, guide: Guide, size: int) -> Compilable:
    """(params, noise, arguments) -> log gamma - log q~ of draws, and which are inside the region."""

    def evaluate(params: Any, noise: jax.Array, arguments: Any) -> Any:
        def one(row: jax.Array) -> Any:
            u = guide.sample(params, row)
            density = target.density(u, arguments)
            log_q = guide.log_prob(params, u)
            return density.log_joint + density.log_det - log_q, density.inside

        return over_rows(one)(_rows(noise, size, guide.noise_size(target.dim)))

    return evaluate


def make_draw(target: Target, guide: Guide, size: int) -> Compilable:
    """(params, noise, arguments) -> sites of draws by name, and which are inside the region."""

    def draw(params: Any, noise: jax.Array, arguments: Any) -> Any:
        def one(row: jax.Array) -> Any:
            return target.values(guide.sample(params, row), arguments)

        return over_rows(one)(_rows(noise, size, guide.noise_size(target.dim)))

    return draw


def make_log_prob(target: Target, guide: Guide) -> Compilable:
    """(params, values, arguments) -> log q~ of one draw, in the coordinates of the program."""

    def log_prob(params: Any, values: Any, arguments: Any) -> Any:
        u = target.unconstrain(values, arguments)
        return guide.log_prob(params, u) - target.log_det(u, arguments)

    return log_prob


def _rows(noise: jax.Array, size: int, width: int) -> jax.Array:
    return noise[: size * width].reshape(size, width)
