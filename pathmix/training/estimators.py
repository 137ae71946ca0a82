"""Gradient estimators of the surrogate ELBO (Eq. 9)."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp

from pathmix.guides.base import Guide, Params
from pathmix.target import Density

Estimator = Literal["reparam", "score"]
LogTarget = Callable[[jax.Array], Density]


class Estimate(NamedTuple):
    elbo: jax.Array  # over the usable particles
    gradient: Params
    usable: jax.Array  # how many particles had a finite density and gradient


def surrogate(density: Density, log_c: jax.Array) -> jax.Array:
    """log gamma~ in unconstrained coordinates: the constant c outside the region (Eq. 8)."""
    return jnp.where(density.inside, density.log_joint, log_c) + density.log_det


def reparam(guide: Guide, target: LogTarget, log_c: jax.Array, params: Params, noise: jax.Array) -> Estimate:
    """The path derivative ("sticking the landing"): unbiased, and exactly zero at an exact guide.

    Biased where the region cuts through the guide: it cannot see the jump.
    """
    fixed = jax.lax.stop_gradient(params)

    def log_ratio(u: jax.Array) -> jax.Array:
        return surrogate(target(u), log_c) - guide.log_prob(fixed, u)

    draws, pull_back = jax.vjp(lambda p: jax.vmap(lambda n: guide.sample(p, n))(noise), params)
    values, slopes = jax.vmap(jax.value_and_grad(log_ratio))(draws)
    usable = jnp.isfinite(values) & jnp.all(jnp.isfinite(slopes), axis=1)
    count = jnp.maximum(jnp.sum(usable), 1)
    (gradient,) = pull_back(jnp.where(usable[:, None], slopes, 0.0) / count)
    return Estimate(jnp.sum(jnp.where(usable, values, 0.0)) / count, gradient, jnp.sum(usable))


def score(guide: Guide, target: LogTarget, log_c: jax.Array, params: Params, noise: jax.Array) -> Estimate:
    """The score function with a leave-one-out baseline: unbiased on any region."""
    fixed = jax.lax.stop_gradient(params)
    draws = jax.vmap(lambda n: guide.sample(fixed, n))(noise)

    def log_ratio(u: jax.Array) -> jax.Array:
        density = target(u)
        # Zero density inside the region is no better than being outside it.
        floored = jnp.where(density.log_joint == -jnp.inf, log_c, density.log_joint)
        bounded = Density(floored, jnp.zeros(()), density.log_det, density.inside)
        return surrogate(bounded, log_c) - guide.log_prob(fixed, u)

    values = jax.vmap(log_ratio)(draws)
    usable = jnp.isfinite(values)
    values = jnp.where(usable, values, 0.0)
    count = jnp.maximum(jnp.sum(usable), 1)
    others = (jnp.sum(values) - values) / jnp.maximum(count - 1, 1)
    advantage = jnp.where(usable, values - others, 0.0) / count

    def weighted(p: Params) -> jax.Array:
        return jnp.sum(advantage * jax.vmap(lambda u: guide.log_prob(p, u))(draws))

    return Estimate(jnp.sum(values) / count, jax.grad(weighted)(params), jnp.sum(usable))


ESTIMATORS: dict[Estimator, Callable[..., Estimate]] = {"reparam": reparam, "score": score}


def ascent(gradient: Params) -> Any:
    """Optimisers minimise; the ELBO is maximised."""
    return jax.tree.map(jnp.negative, gradient)
