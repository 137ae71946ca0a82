"""Tempered sequential Monte Carlo to a path's density, by blackjax, wholly inside XLA.

Particles start at draws of a proposal q_0 that are inside the path's region, and go through q_0^(1-t) gamma^t
to gamma. Hamiltonian moves take the particles' covariance for a metric; steps of temperature keep half of
them effective.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from pathmix.engine.batching import with_safe_lapack
from pathmix.engine.requests import MemberFunction
from pathmix.evidence.proposal import Proposal, log_prob
from pathmix.target.target import Arguments, Target

_EFFECTIVE = 0.5  # share of the particles, from one temperature to the next
_MOVES, _LEAPS = 2, 6  # of each particle at a temperature, and steps of a move
_GOAL = 0.7  # acceptance of moves
_COLD = 1e-12  # the first temperature: not zero, so that no particle leaves the region
_NOTHING = -1e30  # the logarithm of no density: as good as -inf, without its arithmetic


class Population(NamedTuple):
    """What one population of particles starts with."""

    words: Any  # of a key
    particles: Any
    proposal: Proposal
    most: Any  # temperatures


class Arrived(NamedTuple):
    """What it ended with."""

    particles: jax.Array
    weights: jax.Array
    log_ratio: jax.Array  # of gamma's integral to that of q_0 inside the region
    temperature: jax.Array  # 1 unless there were too many steps
    temperatures: jax.Array  # how many there were


class _Carry(NamedTuple):
    state: Any
    key: jax.Array
    log_ratio: jax.Array
    step: jax.Array
    taken: jax.Array  # temperatures


def evaluations(particles: int, temperatures: int) -> int:
    """Densities that a population computes, those for gradients among them."""
    return particles * temperatures * (_MOVES * (_LEAPS + 1) + 2)


def make_tempered(target: Target, particles: int) -> MemberFunction:
    """(., arguments, population) -> where it arrived."""
    # Imported, blackjax uses JAX at once, which must not happen before a fork.
    from blackjax.mcmc import hmc
    from blackjax.smc import adaptive_tempered, resampling

    side_by_side = target.rows_at_once(particles)
    batch = 0 if side_by_side == particles else side_by_side

    def run(arguments: Arguments, population: Population) -> Arrived:
        proposal = population.proposal

        def log_target(u: jax.Array) -> jax.Array:
            found = target.density(u, arguments)
            value = found.log_joint + found.log_det
            usable = found.inside & jnp.isfinite(value)
            return jnp.where(usable, value, _NOTHING)

        def log_start(u: jax.Array) -> jax.Array:
            return log_prob(proposal, u)

        def log_weight(u: jax.Array) -> jax.Array:
            found = log_target(u)
            return jnp.where(found > _NOTHING / 2, found - log_start(u), _NOTHING)

        kernel = adaptive_tempered.build_kernel(
            log_start,
            log_weight,
            hmc.build_kernel(),
            hmc.init,
            resampling.systematic,
            target_ess=_EFFECTIVE,
            batch_size=batch,
        )

        def go_on(carry: _Carry) -> jax.Array:
            return (carry.state.tempering_param < 1) & (carry.taken < population.most)

        def step(carry: _Carry) -> _Carry:
            key, moving, jitter = jax.random.split(carry.key, 3)
            state = carry.state
            metric = _covariance(state.particles, state.weights)
            jittered = carry.step * jax.random.uniform(jitter, (particles,), minval=0.6, maxval=1.4)
            state, info = kernel(
                moving,
                state,
                _MOVES,
                {
                    "step_size": jittered,
                    "inverse_mass_matrix": metric[None],
                    "num_integration_steps": jnp.full(1, _LEAPS),
                },
            )
            acceptance = jnp.mean(info.update_info.acceptance_rate)
            return _Carry(
                state._replace(tempering_param=jnp.asarray(state.tempering_param, carry.log_ratio.dtype)),
                key,
                carry.log_ratio + info.log_likelihood_increment,
                jnp.clip(carry.step * jnp.exp(acceptance - _GOAL), 1e-3, 1.5),
                carry.taken + 1,
            )

        zero = jnp.zeros((), population.particles.dtype)
        begun = adaptive_tempered.init(population.particles)._replace(tempering_param=zero + _COLD)
        dim = population.particles.shape[-1]
        key = jax.random.wrap_key_data(population.words)
        start = _Carry(begun, key, zero, zero + dim**-0.25, jnp.zeros((), int))
        end = jax.lax.while_loop(go_on, step, start)
        return Arrived(
            end.state.particles,
            end.state.weights,
            end.log_ratio,
            end.state.tempering_param,
            end.taken,
        )

    return lambda _, arguments, population: with_safe_lapack(run)(arguments, population)


def _covariance(particles: jax.Array, weights: jax.Array) -> jax.Array:
    centred = particles - weights @ particles
    found = (centred * weights[:, None]).T @ centred
    variances = jnp.diag(found)
    return found + jnp.diag(1e-6 * variances + 1e-12)
