"""Gradient estimators of the surrogate ELBO (Eq. 9), and of the truncated one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from pathmix.engine.batching import over_rows
from pathmix.guides.base import Guide, Params, SplitGuide
from pathmix.posterior.fitted import GradientKind
from pathmix.target.target import Density

# What one nat of acceptance is worth in nats of the truncated ELBO. At 0 the acceptance may fall
# without bound; at 0.3 it stays at 0.6 to 0.9 in the examples.
ACCEPTANCE_REWARD = 0.3

LogTarget = Callable[[jax.Array, jax.Array], Density]  # at a vector, as the particle of a number sees it
# Particles with minibatches of their own average out more noise, but where
# they are compared with each other they must see the same data.
OWN_MINIBATCHES: dict[GradientKind, bool] = {
    "reparam": True,
    "mixed": False,
    "score": False,
    "truncated": False,
}


class Estimate(NamedTuple):
    elbo: jax.Array  # over the usable particles
    gradient: Params
    usable: jax.Array  # how many particles had a finite density and gradient


def surrogate(density: Density, log_c: jax.Array) -> jax.Array:
    """log gamma~ in unconstrained coordinates: the constant c outside the region (Eq. 8).

    Zero density inside the region is not outside it, but gets the same value: -inf has no gradient.
    """
    worth_c = ~density.inside | (density.log_joint == -jnp.inf)
    return jnp.where(worth_c, log_c, density.log_joint) + density.log_det


def reparam(guide: Guide, target: LogTarget, log_c: jax.Array, params: Params, noise: jax.Array) -> Estimate:
    """The path derivative ("sticking the landing"): unbiased, and exactly zero at an exact guide.

    Biased where the region cuts through the guide: it cannot see the jump. Particles of zero density
    are left out: all they could do is widen the guide.
    """
    fixed = jax.lax.stop_gradient(params)

    def log_ratio(u: jax.Array, particle: jax.Array) -> tuple[jax.Array, jax.Array]:
        density = target(u, particle)
        return surrogate(density, log_c) - guide.log_prob(fixed, u), density.log_joint == -jnp.inf

    draws, pull_back = jax.vjp(lambda p: jax.vmap(lambda n: guide.sample(p, n))(noise), params)
    (values, is_zero), slopes = over_rows(jax.value_and_grad(log_ratio, has_aux=True))(
        draws, jnp.arange(len(draws))
    )
    usable = jnp.isfinite(values) & jnp.all(jnp.isfinite(slopes), axis=1) & ~is_zero
    count = jnp.maximum(jnp.sum(usable), 1)
    (gradient,) = pull_back(jnp.where(usable[:, None], slopes, 0.0) / count)
    return Estimate(_mean(values, usable), gradient, jnp.sum(usable))


def score(guide: Guide, target: LogTarget, log_c: jax.Array, params: Params, noise: jax.Array) -> Estimate:
    """The score function with a leave-one-out baseline: unbiased for the surrogate on any region."""
    draws, density, log_q = _sampled(guide, target, params, noise)
    values = surrogate(density, log_c) - log_q
    usable = jnp.isfinite(values)
    return Estimate(
        _mean(values, usable),
        _weighted_scores(guide, params, draws, _leave_one_out(values, usable)),
        jnp.sum(usable),
    )


def truncated(
    guide: Guide, target: LogTarget, log_c: jax.Array, params: Params, noise: jax.Array
) -> Estimate:
    """The score function for the truncated guide itself, the ELBO that path weights are made of.

    Draws inside the region are independent draws of the truncated guide q, so with f = log gamma -
    log q~ the gradient of its ELBO, Cov_q(f, grad log q~), has an unbiased leave-one-out estimate:
    neither 1/Z~ nor log Z~ must be estimated (cf. App. E). A small reward for log Z~ keeps the
    acceptance up. Steps with fewer than two draws inside are skipped: the surrogate would widen the
    guide there, and it would land even less often. Draws of zero density count as outside.
    """
    draws, density, log_q = _sampled(guide, target, params, noise)
    values = surrogate(density, log_c) - log_q
    accepted = density.inside & (density.log_joint > -jnp.inf) & jnp.isfinite(values)
    count, particles = jnp.sum(accepted), len(noise)
    reward = jnp.where(accepted, 1 / jnp.maximum(count, 1), 0.0) - 1 / particles
    weights = _leave_one_out(values, accepted) + ACCEPTANCE_REWARD * reward
    return Estimate(
        _mean(values, accepted) + jnp.log(count / particles),
        _weighted_scores(guide, params, draws, weights),
        jnp.where(count >= 2, count, 0),
    )


def mixed(
    guide: SplitGuide,
    target: LogTarget,
    log_c: jax.Array,
    params: Params,
    noise: jax.Array,
    part: tuple[bool, ...],
) -> Estimate:
    """The score function for the coordinates of `part`, which move a jump, the path derivative for the rest.

    With u_1 the part and u_2 the rest, E_q[f] = E_q(u_1) E_q(u_2 | u_1)[f]: the outer expectation is
    differentiated by its score, the inner one, in which nothing jumps, along u_2(params, noise; u_1).
    Unbiased wherever the density jumps only as the part moves.
    """
    fixed = jax.lax.stop_gradient(params)
    moved = jax.lax.stop_gradient(jax.vmap(lambda n: guide.sample_part(params, n, part))(noise))

    def log_ratio(u: jax.Array, particle: jax.Array) -> tuple[jax.Array, jax.Array]:
        density = target(u, particle)
        return surrogate(density, log_c) - guide.log_prob(fixed, u), density.log_joint == -jnp.inf

    def completed(p: Params) -> jax.Array:
        return jax.vmap(lambda u, n: guide.complete(p, u, n, part))(moved, noise)

    draws, pull_back = jax.vjp(completed, params)
    (values, is_zero), slopes = over_rows(jax.value_and_grad(log_ratio, has_aux=True))(
        draws, jnp.arange(len(draws))
    )
    usable = jnp.isfinite(values)
    smooth = usable & jnp.all(jnp.isfinite(slopes), axis=1) & ~is_zero
    (along,) = pull_back(jnp.where(smooth[:, None], slopes, 0.0) / jnp.maximum(jnp.sum(smooth), 1))
    weights = _leave_one_out(values, usable)
    scores = jax.grad(
        lambda p: jnp.sum(weights * jax.vmap(lambda u: guide.log_prob_part(p, u, part))(moved))
    )(params)
    return Estimate(_mean(values, usable), jax.tree.map(jnp.add, along, scores), jnp.sum(usable))


ESTIMATORS: dict[GradientKind, Callable[..., Estimate]] = {
    "reparam": reparam,
    "mixed": mixed,
    "score": score,
    "truncated": truncated,
}


@dataclass(frozen=True)
class Gradient:
    """How a path's gradients are estimated; `part` are the coordinates that "mixed" scores."""

    estimator: GradientKind
    part: tuple[bool, ...] = ()

    def estimate(
        self, guide: Guide, target: LogTarget, log_c: jax.Array, params: Params, noise: jax.Array
    ) -> Estimate:
        part = (self.part,) if self.estimator == "mixed" else ()
        return ESTIMATORS[self.estimator](guide, target, log_c, params, noise, *part)


def _sampled(
    guide: Guide, target: LogTarget, params: Params, noise: jax.Array
) -> tuple[jax.Array, Density, jax.Array]:
    draws = jax.vmap(lambda n: guide.sample(params, n))(noise)
    log_q = jax.vmap(lambda u: guide.log_prob(params, u))(draws)
    return draws, over_rows(target)(draws, jnp.arange(len(draws))), log_q


def _mean(values: jax.Array, usable: jax.Array) -> jax.Array:
    return jnp.sum(jnp.where(usable, values, 0.0)) / jnp.maximum(jnp.sum(usable), 1)


def _leave_one_out(values: jax.Array, usable: jax.Array) -> jax.Array:
    """Each usable value less the mean of the others, over their number."""
    count = jnp.maximum(jnp.sum(usable), 1)
    kept = jnp.where(usable, values, 0.0)
    others = (jnp.sum(kept) - kept) / jnp.maximum(count - 1, 1)
    return jnp.where(usable, kept - others, 0.0) / count


def _weighted_scores(guide: Guide, params: Params, draws: jax.Array, weights: jax.Array) -> Params:
    fixed = jax.lax.stop_gradient(draws)
    return jax.grad(lambda p: jnp.sum(weights * jax.vmap(lambda u: guide.log_prob(p, u))(fixed)))(params)


def ascent(gradient: Params) -> Any:
    """Optimisers minimise; the ELBO is maximised."""
    return jax.tree.map(jnp.negative, gradient)
