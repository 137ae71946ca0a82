"""Tempered sequential Monte Carlo to a path's density, wholly inside XLA.

Particles start at draws of a proposal q_0 that are inside the path's region, and go through q_0^(1-t) gamma^t
to gamma. Hamiltonian moves take the particles' covariance for a metric; steps of temperature keep half of
them effective. Densities stay with the particles, so that the code has one place where they are computed:
most of it is the path's density, and each further copy takes a second to compile.
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from pathmix.engine import stablehlo
from pathmix.engine.batching import in_chunks, over_rows
from pathmix.engine.members import row_of
from pathmix.engine.requests import MemberFunction
from pathmix.evidence.proposal import Proposal, log_prob
from pathmix.target.formula import Arguments, Formula

_EFFECTIVE = 0.5  # share of the particles, from one temperature to the next
_MOVES, _LEAPS = 2, 6  # of each particle at a temperature, and steps of a move
_LEAST_JITTER, _JITTER = 0.6, 0.8  # of the length of steps
_GOAL = 0.7  # acceptance of moves
_HALVINGS = 50
_TINY = 1e-12  # the least random number: none has an infinite logarithm
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
    log_ratio: jax.Array  # of gamma's integral to that of q_0 inside the region
    temperature: jax.Array  # 1 unless there were too many steps
    temperatures: jax.Array  # how many there were


class _Points(NamedTuple):
    """Particles, with the logarithms of q_0 and of gamma / q_0 there, and their slopes."""

    u: jax.Array
    start: jax.Array
    weight: jax.Array
    start_slope: jax.Array
    weight_slope: jax.Array

    def log_density(self, temperature: Any) -> jax.Array:
        return self.start + temperature * self.weight

    def slope(self, temperature: Any) -> jax.Array:
        found = self.start_slope + temperature * self.weight_slope
        return jnp.where(jnp.isfinite(found), found, 0.0)


class _Carry(NamedTuple):
    points: _Points
    temperature: jax.Array
    log_ratio: jax.Array
    step: jax.Array
    taken: jax.Array  # temperatures
    done: jax.Array


def evaluations(particles: int, temperatures: int) -> int:
    """Densities that a population computes, with their gradients."""
    return particles * (temperatures * _MOVES * _LEAPS + 1)


def tempered_types(particles: Any) -> Arrived:
    """Of what that many particles come to."""
    number = stablehlo.types((), particles.dtype)
    return Arrived(
        stablehlo.types(particles.shape, particles.dtype), number, number, stablehlo.types((), int)
    )


def make_tempered(formula: Formula, particles: int) -> MemberFunction:
    """(., arguments, population) -> where it arrived."""
    chunk = formula.rows_at_once(particles)

    def run(_: Any, arguments: Arguments, population: Population) -> Arrived:
        dim = population.particles.shape[-1]

        def log_target(u: jax.Array) -> jax.Array:
            found = formula.density(u, arguments)
            value = found.log_joint + found.log_det
            return jnp.where(found.inside & jnp.isfinite(value), value, _NOTHING)

        def point(u: jax.Array) -> _Points:
            end, end_slope = jax.value_and_grad(log_target)(u)
            start, start_slope = jax.value_and_grad(lambda u: log_prob(population.proposal, u))(u)
            weight = jnp.where(end > _NOTHING / 2, end - start, _NOTHING)
            return _Points(u, start, weight, start_slope, end_slope - start_slope)

        def moved(carry: _Carry, lots: jax.Array) -> tuple[_Points, jax.Array]:
            """The particles after their moves, and the share of those that was accepted.

            At first, nothing but their densities is computed: by a single leap that leads nowhere.
            """
            first, warmth = carry.taken == 0, carry.temperature
            factor = jnp.linalg.cholesky(_covariance(carry.points.u))
            momenta = math.sqrt(2) * jax.lax.erf_inv(2 * lots[:, :, :dim] - 1)
            steps = jnp.where(first, 0.0, carry.step * (_LEAST_JITTER + _JITTER * lots[:, :, dim]))
            chances = jnp.log(lots[:, :, dim + 1])

            def move(number: Any, state: tuple[_Points, jax.Array]) -> tuple[_Points, jax.Array]:
                points, accepted = state
                step, begun = row_of(steps, number)[:, None], row_of(momenta, number)

                def pushed(points: _Points, momenta: jax.Array) -> jax.Array:
                    return momenta + step / 2 * (points.slope(warmth) @ factor)

                def leap(_: Any, state: tuple[_Points, jax.Array]) -> tuple[_Points, jax.Array]:
                    points, momenta = state
                    momenta = pushed(points, momenta)
                    points = in_chunks(over_rows(point), points.u + step * (momenta @ factor.T), chunk)
                    return points, pushed(points, momenta)

                new, ended = jax.lax.fori_loop(0, jnp.where(first, 1, _LEAPS), leap, (points, begun))
                gain = new.log_density(warmth) - points.log_density(warmth)
                gain += jnp.sum(begun**2 - ended**2, axis=1) / 2
                chosen = first | (row_of(chances, number) < gain)  # never if it is NaN
                rate = jnp.mean(jnp.where(jnp.isnan(gain), 0.0, jnp.exp(jnp.minimum(gain, 0.0))))
                kept = jax.tree.map(lambda a, b: jnp.where(_beside(chosen, a), a, b), new, points)
                return kept, accepted + rate / _MOVES

            none = jnp.zeros((), carry.step.dtype)
            return jax.lax.fori_loop(0, jnp.where(first, 1, _MOVES), move, (carry.points, none))

        def go_on(carry: _Carry) -> jax.Array:
            return ~carry.done & (carry.taken <= population.most)

        def warmed(carry: _Carry) -> _Carry:
            """Moves at a temperature, and the particles that the next one takes."""
            # One call: code that makes random numbers takes long to compile.
            drawn = jax.random.uniform(
                jax.random.fold_in(key, carry.taken), (1 + _MOVES * particles * (dim + 2),), u.dtype, _TINY
            )
            points, accepted = moved(carry, drawn[1:].reshape(_MOVES, particles, dim + 2))
            further = _further(points.weight, 1 - carry.temperature)
            shares = further * points.weight
            rows = _systematic(drawn[0], jax.nn.softmax(shares))
            adapted = jnp.clip(carry.step * jnp.exp(accepted - _GOAL), 1e-3, 1.5)
            return _Carry(
                jax.tree.map(lambda column: column[rows], points),
                carry.temperature + further,
                carry.log_ratio + jax.nn.logsumexp(shares) - math.log(particles),
                jnp.where(carry.taken == 0, carry.step, adapted),
                carry.taken + 1,
                carry.temperature >= 1,
            )

        u, key = population.particles, jax.random.wrap_key_data(population.words)
        zero, none, flat = jnp.zeros((), u.dtype), jnp.zeros_like(u[:, 0]), jnp.zeros_like(u)
        start = _Carry(
            _Points(u, none, none, flat, flat),
            zero + _COLD,
            zero,
            zero + dim**-0.25,
            jnp.zeros((), int),
            jnp.array(False),
        )
        end = jax.lax.while_loop(go_on, warmed, start)
        return Arrived(end.points.u, end.log_ratio, end.temperature, end.taken - 1)

    return run


def _further(weights: jax.Array, rest: jax.Array) -> jax.Array:
    """How much warmer it may become at once."""

    def halved(number: Any, bounds: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        low, high = bounds
        tried = jnp.where(number == 0, high, (low + high) / 2)
        powers = jax.nn.softmax(tried * weights)
        enough = _EFFECTIVE * len(weights) * jnp.sum(powers**2) <= 1
        return jnp.where(enough, tried, low), jnp.where(enough, high, tried)

    return jax.lax.fori_loop(0, _HALVINGS, halved, (jnp.zeros_like(rest), rest))[0]


def _systematic(lot: jax.Array, shares: jax.Array) -> jax.Array:
    """Rows, each as often as its share says, by one lot for all."""
    count = len(shares)
    places = (jnp.arange(count) + lot) / count
    return jnp.clip(jnp.searchsorted(jnp.cumsum(shares), places), 0, count - 1)


def _covariance(particles: jax.Array) -> jax.Array:
    centred = particles - jnp.mean(particles, axis=0)
    found = centred.T @ centred / len(particles)
    return found + jnp.diag(1e-6 * jnp.diag(found) + 1e-12)


def _beside(chosen: jax.Array, column: jax.Array) -> jax.Array:
    return chosen if column.ndim == 1 else chosen[:, None]
