"""The training loop, wholly inside XLA: noise in, trained parameters out."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from pathmix.guides.base import Guide, Params
from pathmix.target.target import Arguments, Density, Target
from pathmix.training.estimators import Gradient, ascent


class TrainingState(NamedTuple):
    params: Params
    optimizer: Any


class Progress(NamedTuple):
    """What a block of steps saw."""

    history: jax.Array  # ELBO of each step, NaN where it had no usable particle
    unusable: jax.Array  # steps that were skipped


def make_train(
    target: Target,
    guide: Guide,
    optimizer: optax.GradientTransformation,
    gradient: Gradient,
    particles: int,
    steps: int,
) -> Callable[..., tuple[TrainingState, Progress]]:
    """A function that takes at most `steps` optimisation steps; how many is an argument.

    `powers` are the powers of the likelihood at each step.
    """
    width = guide.noise_size(target.dim)

    def train(
        state: TrainingState,
        noise: jax.Array,
        indices: tuple[jax.Array, ...],
        powers: jax.Array,
        count: jax.Array,
        log_c: jax.Array,
        arguments: Arguments,
    ) -> tuple[TrainingState, Progress]:
        shaped = noise[: steps * particles * width].reshape(steps, particles, width)

        def step(i: jax.Array, carry: tuple[TrainingState, Progress]) -> Any:
            state, progress = carry

            def density(u: jax.Array, particle: jax.Array) -> Density:
                minibatch = [index[i, particle % index.shape[1]] for index in indices] or None
                full = target.density(u, arguments, minibatch)
                return full._replace(log_likelihood=powers[i] * full.log_likelihood)

            found = gradient.estimate(guide, density, log_c, state.params, shaped[i])
            updates, inner = optimizer.update(ascent(found.gradient), state.optimizer, state.params)
            updated = TrainingState(optax.apply_updates(state.params, updates), inner)
            usable = (found.usable > 0) & _all_finite(updated.params)
            kept = jax.tree.map(lambda new, old: jnp.where(usable, new, old), updated, state)
            elbo = jnp.where(usable, found.elbo, jnp.nan)
            return kept, Progress(progress.history.at[i].set(elbo), progress.unusable + ~usable)

        start = Progress(jnp.full(steps, jnp.nan), jnp.zeros((), int))
        return jax.lax.fori_loop(0, count, step, (state, start))

    return train


def _all_finite(tree: Any) -> jax.Array:
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(tree)]))
