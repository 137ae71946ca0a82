"""Weighted vectors, of importance sampling or of tempered SMC, as a component of the posterior."""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pathmix.engine.batching import over_rows
from pathmix.engine.executables import Executables
from pathmix.posterior.evidence import Particles
from pathmix.program.seeds import Seed
from pathmix.program.slp import StraightLineProgram
from pathmix.program.values import SiteRows, SiteValues
from pathmix.target.inert import Inert
from pathmix.target.target import Outcome, Target


@dataclass(frozen=True, eq=False)
class ParticleDraws:
    """Weighted particles; their density is that of the path itself, over its evidence."""

    target: Target
    particles: Particles
    log_evidence: float
    executables: Executables

    @property
    def slp(self) -> StraightLineProgram:
        return self.target.slp

    @property
    def inert(self) -> Inert:
        return self.target.inert

    def draw(self, seed: Seed, count: int) -> SiteRows:
        """A finite set is drawn from, so draws repeat."""
        size = 2 ** max(6, math.ceil(math.log2(count)))  # a few sizes for all counts, since each is compiled
        weights = self.particles.weights / self.particles.weights.sum()
        rows = seed.generator().choice(len(weights), size=size, p=weights)
        target = self.target
        found: Any = self.executables.call(
            ("particles", target.site_structure, size),
            partial(_make_outcomes, target),
            self.particles.vectors[rows],
            target.arguments,
            target.site_graph.consts,
        )
        return target.named(jax.tree.map(lambda column: np.asarray(column)[:count], found))

    def log_prob(self, values: SiteValues) -> float:
        """In the coordinates of the program."""
        row = tuple(jnp.asarray(values[site.name], site.dtype) for site in self.target.sites)
        key, make = ("log_joint", self.target.structure), partial(_make_log_joint, self.target)
        return float(self.executables.call(key, make, row, self.target.arguments)) - self.log_evidence


def _make_outcomes(target: Target) -> Any:
    """(vectors, arguments, consts) -> what vectors stand for."""

    def outcomes(vectors: jax.Array, arguments: Any, consts: Any) -> Outcome:
        return over_rows(lambda u: target.outcome(u, arguments, consts))(vectors)

    return outcomes


def _make_log_joint(target: Target) -> Any:
    """(values, arguments) -> log gamma, -inf outside of the region."""

    def log_joint(values: Any, arguments: Any) -> Any:
        found = target.density(target.unconstrain(values, arguments), arguments)
        return jnp.where(found.inside, found.log_joint, -jnp.inf)

    return log_joint
