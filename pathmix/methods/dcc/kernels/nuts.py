"""NumPyro's No-U-Turn sampler on a path."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from numpyro.infer.hmc import HMCState, hmc

from pathmix.checks import check_positive_int
from pathmix.engine.batching import over_rows
from pathmix.methods.dcc.kernels.base import Moves, PriorScales, log_density
from pathmix.target.formula import Arguments
from pathmix.target.target import Target

Potential = Callable[[jax.Array], jax.Array]


@dataclass(frozen=True)
class NUTS:
    """The No-U-Turn sampler (Hoffman and Gelman 2014), as NumPyro has it.

    Every chain adapts its step size and a diagonal mass matrix in `warmup` moves on the first visit
    of a path, starting from the prior's scales, and keeps them from then on.

    Examples:
        >>> NUTS(warmup=50).warmup
        50
    """

    warmup: int = 100
    max_tree_depth: int = 10

    def __post_init__(self) -> None:
        check_positive_int("NUTS(warmup=...)", self.warmup)
        check_positive_int("NUTS(max_tree_depth=...)", self.max_tree_depth)

    @property
    def burn_in(self) -> float:
        """None: chains adapt before they give samples."""
        return 0.0

    def noise_size(self, dim: int) -> int:
        """None: the state has keys of its own."""
        return 0

    def init(
        self, target: Target, positions: jax.Array, prior: PriorScales, key: jax.Array, arguments: Arguments
    ) -> HMCState:
        """Chains at these positions."""
        start, _ = self._functions(target, prior.scales, arguments)
        return over_rows(start)(positions, jax.random.split(key, len(positions)))

    def advance(
        self, target: Target, state: HMCState, noise: jax.Array, samples: int, arguments: Arguments
    ) -> tuple[HMCState, Moves]:
        """More samples of each chain."""
        chains, dim = state.z.shape
        start, step = self._functions(target, jnp.ones(dim), arguments)
        # NumPyro's step needs what its start leaves behind in Python, whatever the numbers are.
        jax.eval_shape(start, state.z[0], state.rng_key[0])
        skipped = jnp.maximum(self.warmup - state.i[0], 0)

        def move(number: jax.Array, carried: tuple[HMCState, Moves]) -> tuple[HMCState, Moves]:
            state, moves = carried
            state = over_rows(step)(state)
            counted = jnp.where(number >= skipped, jnp.mean(state.accept_prob) / samples, 0)
            return state, Moves(
                moves.positions.at[:, jnp.maximum(number - skipped, 0)].set(state.z),
                moves.acceptance + counted,
                moves.evaluations + jnp.sum(state.num_steps),
            )

        moves = Moves(jnp.zeros((chains, samples, dim)), jnp.zeros(()), jnp.zeros((), int))
        return jax.lax.fori_loop(0, skipped + samples, move, (state, moves))

    def _functions(self, target: Target, scales: jax.Array, arguments: Arguments) -> tuple[Any, Any]:
        """NumPyro's start and step of a single chain."""
        init, step = hmc(_potential(target, arguments), algo="NUTS")

        def start(u: jax.Array, key: jax.Array) -> HMCState:
            return init(
                u,
                self.warmup,
                inverse_mass_matrix=jnp.square(scales),
                max_tree_depth=self.max_tree_depth,
                rng_key=key,
            )

        return start, step


def _potential(target: Target, arguments: Arguments) -> Potential:
    return lambda u: -log_density(target, u, arguments)
