"""Densities that rounding would falsify: a map may be so stretched that the way back is lost."""

from collections.abc import Callable

import jax
import jax.numpy as jnp

_ROUNDINGS = 4
_MOST_LOST = 0.1  # nats: errors are smaller by far, unless they are huge


def kept_by_rounding(log_prob: Callable[[jax.Array], jax.Array], u: jax.Array, loc: jax.Array) -> jax.Array:
    """The log-density at u, NaN where a hair beside u it is another; `loc` was added on the way to u."""
    found = log_prob(u)
    hair = _ROUNDINGS * jnp.finfo(u.dtype).eps * (jnp.abs(u) + jnp.abs(loc))
    signs = jnp.where(jnp.arange(u.shape[0]) % 2 == 0, 1.0, -1.0)
    return same(found, log_prob(jax.lax.stop_gradient(u + signs.astype(u.dtype) * hair)))


def same(found: jax.Array, again: jax.Array) -> jax.Array:
    """What was found, NaN where it was something else the second time."""
    lost = jax.lax.stop_gradient(jnp.abs(again - found))
    return jnp.where(lost < _MOST_LOST, found, jnp.nan)
