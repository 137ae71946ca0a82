"""Bijections from R onto intervals, for sites that a path bounds.

Chosen so that a normal guide fits what paths leave behind: a density that is cut off where it is
still high. Onto (a, b), the normal distribution function turns a normal into a uniform exactly.
Onto a half-line, softplus is linear far from the end, so tails keep their shape: the best normal
guide then misses a half-normal by 0.01 to 0.03 nats, where the exponential map costs 0.15.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtr, ndtri

Kind = Literal["interval", "above", "below", "mixed"]
Branch = Callable[[], jax.Array]


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["lower", "upper", "has_lower", "has_upper", "scale"],
    meta_fields=["kind"],
)
@dataclass(frozen=True)
class Box:
    """Element by element onto (lower, upper), where an element has those ends."""

    lower: jax.Array
    upper: jax.Array
    has_lower: jax.Array
    has_upper: jax.Array
    scale: jax.Array  # of half-lines
    kind: Kind

    def __call__(self, u: jax.Array) -> jax.Array:
        return self._pick(
            interval=lambda: self.lower + (self.upper - self.lower) * ndtr(u),
            above=lambda: self.lower + self.scale * jax.nn.softplus(u),
            below=lambda: self.upper - self.scale * jax.nn.softplus(u),
            real=lambda: u,
        )

    def inv(self, x: jax.Array) -> jax.Array:
        return self._pick(
            interval=lambda: ndtri((x - self.lower) / (self.upper - self.lower)),
            above=lambda: _softplus_inverse((x - self.lower) / self.scale),
            below=lambda: _softplus_inverse((self.upper - x) / self.scale),
            real=lambda: x,
        )

    def log_abs_det_jacobian(self, u: jax.Array, x: jax.Array) -> jax.Array:
        """Logarithm of the derivative, element by element."""
        del x

        def half_line() -> jax.Array:
            return jnp.log(self.scale) - jax.nn.softplus(-u)

        return self._pick(
            interval=lambda: jnp.log(self.upper - self.lower) + jax.scipy.stats.norm.logpdf(u),
            above=half_line,
            below=half_line,
            real=lambda: jnp.zeros_like(u),
        )

    def _pick(self, *, interval: Branch, above: Branch, below: Branch, real: Branch) -> jax.Array:
        if self.kind == "mixed":
            cases = [self.has_lower & self.has_upper, self.has_lower, self.has_upper]
            return jnp.select(cases, [interval(), above(), below()], real())
        return {"interval": interval, "above": above, "below": below}[self.kind]()


def make_box(lower: np.ndarray, upper: np.ndarray, draws: np.ndarray) -> Box:
    """The bijection onto (lower, upper), with half-lines scaled by prior draws of the site."""
    low, high = np.isfinite(lower), np.isfinite(upper)
    # Absent ends get a finite stand-in: a branch that is not picked must not give NaN gradients.
    start, stop = np.where(low, lower, 0.0), np.where(high, upper, 1.0)
    stop = np.where(low & ~high, start + 1.0, stop)
    start = np.where(high & ~low, stop - 1.0, start)
    distance = np.where(low, draws - start, stop - draws)
    spread = np.sqrt(np.mean(np.square(distance), axis=0)) / 2
    usable = np.isfinite(spread) & (spread > 0)
    kind: Kind = "mixed"
    if np.all(low & high):
        kind = "interval"
    elif np.all(low & ~high):
        kind = "above"
    elif np.all(high & ~low):
        kind = "below"
    return Box(
        lower=jnp.asarray(start, float),
        upper=jnp.asarray(stop, float),
        has_lower=jnp.asarray(low),
        has_upper=jnp.asarray(high),
        scale=jnp.asarray(np.where(usable, spread, 1.0), float),
        kind=kind,
    )


def _softplus_inverse(y: jax.Array) -> jax.Array:
    return y + jnp.log(-jnp.expm1(-y))
