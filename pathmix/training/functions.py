"""The functions of a path that are compiled besides its training loop. All take a batch."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from pathmix.guides.base import Guide
from pathmix.target import Target

Compilable = Callable[..., Any]


def make_prepare(target: Target, chunk: int) -> Compilable:
    """(values, arguments) -> unconstrained vectors and log gamma of prior draws, a chunk at a time."""

    def prepare(values: Any, arguments: Any) -> Any:
        if target.dim == 0:  # lax.map takes no empty arrays
            log_joint = jax.lax.map(lambda row: target.log_joint(row, arguments), values, batch_size=chunk)
            return jnp.zeros((len(log_joint), 0)), log_joint
        return jax.lax.map(
            lambda row: (target.unconstrain(row, arguments), target.log_joint(row, arguments)),
            values,
            batch_size=chunk,
        )

    return prepare


def make_evaluate(target: Target, guide: Guide, size: int) -> Compilable:
    """(params, noise, arguments) -> log gamma - log q~ of draws, and which are inside the region."""

    def evaluate(params: Any, noise: jax.Array, arguments: Any) -> Any:
        def one(row: jax.Array) -> Any:
            u = guide.sample(params, row)
            density = target.density(u, arguments)
            log_q = guide.log_prob(params, u)
            return density.log_joint + density.log_det - log_q, density.inside

        return jax.vmap(one)(_rows(noise, size, guide.noise_size(target.dim)))

    return evaluate


def make_draw(target: Target, guide: Guide, size: int) -> Compilable:
    """(params, noise, arguments) -> sites of draws by name, and which are inside the region."""

    def draw(params: Any, noise: jax.Array, arguments: Any) -> Any:
        def one(row: jax.Array) -> Any:
            return target.values(guide.sample(params, row), arguments)

        return jax.vmap(one)(_rows(noise, size, guide.noise_size(target.dim)))

    return draw


def make_log_prob(target: Target, guide: Guide) -> Compilable:
    """(params, values, arguments) -> log q~ of one draw, in the coordinates of the program."""

    def log_prob(params: Any, values: Any, arguments: Any) -> Any:
        u = target.unconstrain(values, arguments)
        return guide.log_prob(params, u) - target.log_det(u, arguments)

    return log_prob


def _rows(noise: jax.Array, size: int, width: int) -> jax.Array:
    return noise[: size * width].reshape(size, width)
