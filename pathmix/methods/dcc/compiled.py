"""The functions of a path under sampling that are compiled, besides its importance weights."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from pathmix.engine.batching import in_chunks, over_rows
from pathmix.methods.dcc.kernels.base import Kernel, log_density
from pathmix.target.target import Target

Compilable = Callable[..., Any]


def make_init(target: Target, kernel: Kernel) -> Compilable:
    """(positions, prior, key, arguments) -> chains at rest."""
    return lambda *args: kernel.init(target, *args)


def make_advance(target: Target, kernel: Kernel, samples: int) -> Compilable:
    """(state, noise, arguments) -> the chains, and their moves."""
    return lambda state, noise, arguments: kernel.advance(target, state, noise, samples, arguments)


def make_log_densities(target: Target, chunk: int) -> Compilable:
    """(vectors, arguments) -> log gamma_k of flat vectors, a chunk at a time."""

    def log_densities(vectors: jax.Array, arguments: Any) -> jax.Array:
        return in_chunks(over_rows(lambda u: log_density(target, u, arguments)), vectors, chunk)

    return log_densities


def make_values(target: Target) -> Compilable:
    """(vectors, (arguments, consts)) -> what vectors stand for."""
    return lambda vectors, given: over_rows(lambda u: target.outcome(u, *given))(*vectors)


def make_log_joint(target: Target) -> Compilable:
    """(values, arguments) -> log gamma of one draw, in the coordinates of the program."""

    def log_joint(values: Any, arguments: Any) -> jax.Array:
        # Densities are formulas that go on outside a site's support; the flat vector does not.
        inside = jnp.all(jnp.isfinite(target.formula.unconstrain(values, arguments)))
        return jnp.where(inside, target.log_joint(values, arguments), jnp.nan)

    return log_joint
