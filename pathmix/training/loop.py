"""The training loop, wholly inside XLA: noise in, trained parameters out.

With its updates switched off it evaluates: the densities of draws of the guide, or of given vectors. One
executable then serves a structure for all that is done with it.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from pathmix.engine import stablehlo
from pathmix.engine.members import row_of, with_row
from pathmix.engine.requests import MemberFunction
from pathmix.guides.base import Guide, Params
from pathmix.target.formula import Arguments, Density, Formula
from pathmix.training.estimators import Gradient, Seen, ascent


class TrainingState(NamedTuple):
    params: Params
    optimizer: Any


class Mode(NamedTuple):
    """What a call of the loop shall do."""

    updating: bool  # train, or evaluate
    given: bool  # at vectors that take the place of the noise, or at draws of the guide


TRAINING, DRAWING, GIVEN = Mode(True, False), Mode(False, False), Mode(False, True)


class Stretch(NamedTuple):
    """What a member brings to a call of so many steps."""

    state: TrainingState
    noise: Any
    indices: tuple[Any, ...]  # of minibatches
    powers: Any  # of the likelihood, at each step
    rates: Any  # by which the optimiser's updates are multiplied, at each step
    count: Any
    log_c: Any


class Progress(NamedTuple):
    """What a call saw."""

    history: jax.Array  # ELBO of each step, NaN where it had no usable particle
    unusable: jax.Array  # steps that were skipped
    seen: Seen  # by all particles of all steps


def noise_width(guide: Guide, dim: int) -> int:
    """Numbers that one particle takes: noise for a draw, or the vector itself."""
    return max(guide.noise_size(dim), dim)


def loop_types(state: TrainingState, particles: int, steps: int) -> tuple[TrainingState, Progress]:
    """Of what a loop gives."""
    seen = stablehlo.types((steps, particles), jnp.result_type(*jax.tree.leaves(state.params)))
    inside = stablehlo.types((steps, particles), bool)
    progress = Progress(
        stablehlo.types((steps,), float), stablehlo.types((), int), Seen(seen, seen, seen, inside)
    )
    return jax.tree.map(stablehlo.shape, state), progress


def make_loop(
    formula: Formula,
    guide: Guide,
    optimizer: optax.GradientTransformation,
    gradient: Gradient,
    particles: int,
    steps: int,
) -> MemberFunction:
    """(mode, arguments, stretch) -> (state, progress), for at most `steps` steps."""
    dim, width = formula.dim, noise_width(guide, formula.dim)

    def run(mode: Mode, arguments: Arguments, stretch: Stretch) -> tuple[TrainingState, Progress]:
        shaped = stretch.noise[: steps * particles * width].reshape(steps, particles, width)

        def step(i: jax.Array, carry: tuple[TrainingState, Progress]) -> Any:
            state, progress = carry
            power, rate, own = (row_of(rows, i) for rows in (stretch.powers, stretch.rates, shaped))

            def density(u: jax.Array, particle: jax.Array) -> Density:
                minibatch = [index[i, particle % index.shape[1]] for index in stretch.indices] or None
                full = formula.density(u, arguments, minibatch)
                return full._replace(log_likelihood=power * full.log_likelihood)

            def placed(draws: jax.Array) -> jax.Array:
                return jnp.where(mode.given, own[:, :dim], draws)

            noise = own[:, : guide.noise_size(dim)]
            found = gradient.estimate(
                guide, density, stretch.log_c, state.params, noise, placed, mode.updating
            )

            def updated() -> tuple[TrainingState, jax.Array]:
                slope, count = found.gradient()
                updates, inner = optimizer.update(ascent(slope), state.optimizer, state.params)
                slower = jax.tree.map(lambda update: rate * update, updates)
                after = TrainingState(optax.apply_updates(state.params, slower), inner)
                usable = (count > 0) & _all_finite(after.params)
                return jax.tree.map(lambda new, old: jnp.where(usable, new, old), after, state), usable

            state, usable = jax.lax.cond(mode.updating, updated, lambda: (state, jnp.array(True)))
            elbo = jnp.where(usable, found.elbo, jnp.nan)
            return state, Progress(
                with_row(progress.history, elbo, i),
                progress.unusable + ~usable,
                jax.tree.map(lambda column, row: with_row(column, row, i), progress.seen, found.seen),
            )

        number = stretch.state.params  # in the engine's precision
        blank = jnp.zeros((steps, particles), jnp.result_type(*jax.tree.leaves(number)))
        nothing = Seen(blank, blank, blank, jnp.zeros((steps, particles), bool))
        start = Progress(jnp.full(steps, jnp.nan), jnp.zeros((), int), nothing)
        return jax.lax.fori_loop(0, stretch.count, step, (stretch.state, start))

    return run


def _all_finite(tree: Any) -> jax.Array:
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(tree)]))
