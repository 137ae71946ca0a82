"""Gradient estimators of the surrogate ELBO (Eq. 9), and of the truncated one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from pathmix.engine.batching import over_rows
from pathmix.guides.base import Guide, Params, SplitGuide
from pathmix.posterior.fitted import GradientKind
from pathmix.target.formula import Density

# What one nat of acceptance is worth in nats of the truncated ELBO. At 0 the acceptance may fall
# without bound; at 0.3 it stays at 0.6 to 0.9 in the examples.
ACCEPTANCE_REWARD = 0.3

LogTarget = Callable[[jax.Array, jax.Array], Density]  # at a vector, as the particle of a number sees it
Draw = Callable[[Params], jax.Array]  # all particles
Truth = bool | jax.Array
# Particles with minibatches of their own average out more noise, but where
# they are compared with each other they must see the same data.
OWN_MINIBATCHES: dict[GradientKind, bool] = {
    "reparam": True,
    "mixed": False,
    "score": False,
    "truncated": False,
}


class Seen(NamedTuple):
    """What each particle came upon."""

    log_joint: jax.Array
    log_det: jax.Array
    log_q: jax.Array
    inside: jax.Array


class Estimate(NamedTuple):
    elbo: jax.Array  # over the usable particles
    gradient: Callable[
        [], tuple[Params, jax.Array]
    ]  # with how many particles it is of; computed if asked for
    seen: Seen


def surrogate(density: Density, log_c: jax.Array) -> jax.Array:
    """log gamma~ in unconstrained coordinates: the constant c outside the region (Eq. 8).

    Zero density inside the region is not outside it, but gets the same value: -inf has no gradient.
    """
    worth_c = ~density.inside | (density.log_joint == -jnp.inf)
    return jnp.where(worth_c, log_c, density.log_joint) + density.log_det


def reparam(
    guide: Guide, target: LogTarget, log_c: jax.Array, params: Params, draw: Draw, updating: Truth = True
) -> Estimate:
    """The path derivative ("sticking the landing"): unbiased, and exactly zero at an exact guide.

    Biased where the region cuts through the guide: it cannot see the jump. Particles of zero density
    are left out: all they could do is widen the guide.
    """
    draws, pull_back = jax.vjp(draw, params)
    values, seen, slopes = _log_ratios(guide, target, log_c, params, draws, updating)
    is_zero = seen.log_joint == -jnp.inf

    def gradient() -> tuple[Params, jax.Array]:
        usable = jnp.isfinite(values) & jnp.all(jnp.isfinite(slopes), axis=1) & ~is_zero
        count = jnp.maximum(jnp.sum(usable), 1)
        (found,) = pull_back(jnp.where(usable[:, None], slopes, 0.0) / count)
        return found, jnp.sum(usable)

    return Estimate(_mean(values, jnp.isfinite(values) & ~is_zero), gradient, seen)


def score(
    guide: Guide, target: LogTarget, log_c: jax.Array, params: Params, draw: Draw, _: Truth = True
) -> Estimate:
    """The score function with a leave-one-out baseline: unbiased for the surrogate on any region."""
    draws, values, seen = _sampled(guide, target, log_c, params, draw)
    usable = jnp.isfinite(values)

    def gradient() -> tuple[Params, jax.Array]:
        return _weighted_scores(guide, params, draws, _leave_one_out(values, usable)), jnp.sum(usable)

    return Estimate(_mean(values, usable), gradient, seen)


def truncated(
    guide: Guide, target: LogTarget, log_c: jax.Array, params: Params, draw: Draw, _: Truth = True
) -> Estimate:
    """The score function for the truncated guide itself, the ELBO that path weights are made of.

    Draws inside the region are independent draws of the truncated guide q, so with f = log gamma -
    log q~ the gradient of its ELBO, Cov_q(f, grad log q~), has an unbiased leave-one-out estimate:
    neither 1/Z~ nor log Z~ must be estimated (cf. App. E). A small reward for log Z~ keeps the
    acceptance up. Steps with fewer than two draws inside are skipped: the surrogate would widen the
    guide there, and it would land even less often. Draws of zero density count as outside.
    """
    draws, values, seen = _sampled(guide, target, log_c, params, draw)
    accepted = seen.inside & (seen.log_joint > -jnp.inf) & jnp.isfinite(values)
    count, particles = jnp.sum(accepted), len(draws)

    def gradient() -> tuple[Params, jax.Array]:
        reward = jnp.where(accepted, 1 / jnp.maximum(count, 1), 0.0) - 1 / particles
        weights = _leave_one_out(values, accepted) + ACCEPTANCE_REWARD * reward
        return _weighted_scores(guide, params, draws, weights), jnp.where(count >= 2, count, 0)

    return Estimate(_mean(values, accepted) + jnp.log(count / particles), gradient, seen)


def mixed(
    guide: SplitGuide,
    target: LogTarget,
    log_c: jax.Array,
    params: Params,
    noise: jax.Array,
    part: tuple[bool, ...],
    placed: Callable[[jax.Array], jax.Array] = lambda draws: draws,
    updating: Truth = True,
) -> Estimate:
    """The score function for the coordinates of `part`, which move a jump, the path derivative for the rest.

    With u_1 the part and u_2 the rest, E_q[f] = E_q(u_1) E_q(u_2 | u_1)[f]: the outer expectation is
    differentiated by its score, the inner one, in which nothing jumps, along u_2(params, noise; u_1).
    Unbiased wherever the density jumps only as the part moves.
    """
    moved = jax.lax.stop_gradient(jax.vmap(lambda n: guide.sample_part(params, n, part))(noise))

    def completed(p: Params) -> jax.Array:
        return placed(jax.vmap(lambda u, n: guide.complete(p, u, n, part))(moved, noise))

    draws, pull_back = jax.vjp(completed, params)
    values, seen, slopes = _log_ratios(guide, target, log_c, params, draws, updating)
    usable = jnp.isfinite(values)

    def gradient() -> tuple[Params, jax.Array]:
        smooth = usable & jnp.all(jnp.isfinite(slopes), axis=1) & (seen.log_joint > -jnp.inf)
        (along,) = pull_back(jnp.where(smooth[:, None], slopes, 0.0) / jnp.maximum(jnp.sum(smooth), 1))
        weights = _leave_one_out(values, usable)
        scores = jax.grad(
            lambda p: jnp.sum(weights * jax.vmap(lambda u: guide.log_prob_part(p, u, part))(moved))
        )(params)
        return jax.tree.map(jnp.add, along, scores), jnp.sum(usable)

    return Estimate(_mean(values, usable), gradient, seen)


_ESTIMATORS: dict[GradientKind, Callable[..., Estimate]] = {
    "reparam": reparam,
    "score": score,
    "truncated": truncated,
}


@dataclass(frozen=True)
class Gradient:
    """How a path's gradients are estimated; `part` are the coordinates that "mixed" scores."""

    estimator: GradientKind
    part: tuple[bool, ...] = ()

    def estimate(
        self,
        guide: Guide,
        target: LogTarget,
        log_c: jax.Array,
        params: Params,
        noise: jax.Array,
        placed: Callable[[jax.Array], jax.Array] = lambda draws: draws,
        updating: Truth = True,
    ) -> Estimate:
        """From noise for each particle; `placed` may put the particles elsewhere.

        The gradient is only right while `updating`.
        """
        if self.estimator == "mixed":
            assert isinstance(guide, SplitGuide)
            return mixed(guide, target, log_c, params, noise, self.part, placed, updating)

        def draw(p: Params) -> jax.Array:
            return placed(jax.vmap(lambda n: guide.sample(p, n))(noise))

        return _ESTIMATORS[self.estimator](guide, target, log_c, params, draw, updating)


def _log_ratios(
    guide: Guide, target: LogTarget, log_c: jax.Array, params: Params, draws: jax.Array, updating: Truth
) -> tuple[jax.Array, Seen, jax.Array]:
    """log gamma~ - log q~ of all particles, and if it is asked for its slopes, with the guide held fixed."""
    fixed = jax.lax.stop_gradient(params)

    def one(u: jax.Array, particle: jax.Array) -> tuple[jax.Array, Seen]:
        density, log_q = target(u, particle), guide.log_prob(fixed, u)
        seen = Seen(density.log_joint, density.log_det, log_q, density.inside)
        return surrogate(density, log_c) - log_q, seen

    numbers = jnp.arange(len(draws))

    def with_slopes() -> tuple[jax.Array, Seen, jax.Array]:
        (values, seen), slopes = over_rows(jax.value_and_grad(one, has_aux=True))(draws, numbers)
        return values, seen, slopes

    def without() -> tuple[jax.Array, Seen, jax.Array]:
        return *over_rows(one)(draws, numbers), jnp.zeros_like(draws)

    return with_slopes() if updating is True else jax.lax.cond(updating, with_slopes, without)


def _sampled(
    guide: Guide, target: LogTarget, log_c: jax.Array, params: Params, draw: Draw
) -> tuple[jax.Array, jax.Array, Seen]:
    draws = draw(params)
    log_q = jax.vmap(lambda u: guide.log_prob(params, u))(draws)
    density = over_rows(target)(draws, jnp.arange(len(draws)))
    seen = Seen(density.log_joint, density.log_det, log_q, density.inside)
    return draws, surrogate(density, log_c) - log_q, seen


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
