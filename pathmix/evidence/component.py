"""Weighted vectors, of importance sampling or of tempered SMC, as a component of the posterior."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from pathmix.engine.batching import over_rows
from pathmix.engine.executables import Executables
from pathmix.posterior.compiled import Function, compiled, rows_of
from pathmix.posterior.components import Compiled, ParticleDraws
from pathmix.posterior.evidence import Particles
from pathmix.target.target import Outcome, Target


def particle_draws(
    target: Target, particles: Particles, log_evidence: float, executables: Executables
) -> ParticleDraws:
    """Their density is that of the path itself, over its evidence."""

    def make() -> Compiled:
        return compiled(
            target,
            executables,
            (),
            jax.ShapeDtypeStruct((rows_of(target), target.dim), particles.vectors.dtype),
            Function("particles", partial(_make_outcomes, target)),
            Function("log_joint", partial(_make_log_joint, target)),
        )

    slp = target.slp
    return ParticleDraws(slp.outline, target.inert, slp, make, particles, log_evidence)


def _make_outcomes(target: Target) -> Any:
    """(., vectors, arguments, consts) -> what vectors stand for."""

    def outcomes(_: Any, vectors: jax.Array, arguments: Any, consts: Any) -> Outcome:
        return over_rows(lambda u: target.outcome(u, arguments, consts))(vectors)

    return outcomes


def _make_log_joint(target: Target) -> Any:
    """(., values, arguments) -> log gamma, -inf outside of the region."""

    def log_joint(_: Any, values: Any, arguments: Any) -> Any:
        found = target.formula.density(target.formula.unconstrain(values, arguments), arguments)
        return jnp.where(found.inside, found.log_joint, -jnp.inf)

    return log_joint
