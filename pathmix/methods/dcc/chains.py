"""One path under sampling: its chains, its evidence so far, and the states that are kept."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pathmix.engine.batching import in_batches
from pathmix.engine.executables import Executables
from pathmix.engine.noise import noise_size, normals
from pathmix.methods.dcc.compiled import (
    make_advance,
    make_init,
    make_log_densities,
    make_log_joint,
    make_values,
)
from pathmix.methods.dcc.kernels.base import Kernel, State, make_prior_scales
from pathmix.methods.dcc.pimais import Evidence, make_log_weights
from pathmix.methods.dcc.spread import Spread
from pathmix.methods.dcc.summed import completed, log_share
from pathmix.methods.dcc.thinned import Thinned
from pathmix.posterior.components import WeightedDraws
from pathmix.program.seeds import Seed
from pathmix.program.values import SiteRows, SiteValues
from pathmix.target.target import Target
from pathmix.training.compiled import make_unconstrain

_START_ROWS = 64  # prior draws among which chains look for a place to start
_ROWS = 256  # of a compiled call, where their number varies
_DRAWS = 1_000  # at least, of what was summed out
_KEPT_STATES = 4_000


@dataclass(frozen=True)
class ChainOptions:
    kernel: Kernel
    chains: int
    samples: int
    proposals: int


class PathChains:
    """The state of one path through all visits."""

    def __init__(self, target: Target, options: ChainOptions, executables: Executables, seed: Seed) -> None:
        self.target, self.options, self.executables, self.seed = target, options, executables, seed
        self.visits = 0
        self.evidence = Evidence()
        self.evaluations = 0
        self.acceptance = 0.0  # mean over visits
        self.failure: Exception | None = None
        self._state: State = None
        self._spread: Spread | None = None
        self._kept = Thinned(max(1, _KEPT_STATES // options.chains))

    @property
    def log_evidence(self) -> float:
        broken = self.failure is not None or self.evidence.infinite > 0
        return -math.inf if broken else self.evidence.log_mean

    @property
    def steps(self) -> int:
        return self.visits * self.options.chains * self.options.samples

    @property
    def worth_a_visit(self) -> bool:
        """Whether chains are running, and nothing has gone wrong."""
        return self._state is not None and self.failure is None and self.evidence.infinite == 0

    def weigh_the_only_point(self) -> None:
        """Without free sites, the evidence is the density at the only point."""
        self.evidence = self.evidence.add(self._log_densities(np.zeros((1, 0))))

    def start(self, draws: SiteRows) -> None:
        """Put the chains at prior draws of positive density, if there are any."""
        columns = self.target.columns(draws)
        vectors = self._in_batches("unconstrain", partial(make_unconstrain, self.target), columns)
        rows = vectors[np.arange(max(_START_ROWS, self.options.chains)) % len(vectors)]
        log_densities = self._log_densities(rows)
        usable = rows[np.isfinite(log_densities)]
        if len(usable) == 0:
            self.evidence = self.evidence.add(log_densities)
            return
        prior = make_prior_scales(self.target.coordinates, vectors)
        starts = usable[np.arange(self.options.chains) % len(usable)]
        self._state = self._call(
            "init",
            partial(make_init, self.target, self.options.kernel),
            jnp.asarray(starts),
            prior,
            self.seed.child(0).key(),
            self.target.arguments,
        )
        self.evaluations += len(starts)
        self._spread = Spread(np.median(usable, axis=0), np.asarray(prior.scales))

    def visit(self) -> None:
        """More samples of every chain, and importance sampling around them."""
        kernel, samples = self.options.kernel, self.options.samples
        self._state, moves = self._call(
            "advance",
            partial(make_advance, self.target, kernel, samples),
            self._state,
            self._noise(1, self.options.chains * samples * kernel.noise_size(self.target.dim)),
            self.target.arguments,
        )
        positions = np.asarray(moves.positions)
        self._kept.add(positions)
        self.evidence = self.evidence.add(self._log_weights(moves.positions, positions))
        self.visits += 1
        self.evaluations += int(moves.evaluations)
        self.acceptance += (float(moves.acceptance) - self.acceptance) / self.visits

    def _log_weights(self, positions: jax.Array, on_host: np.ndarray) -> np.ndarray:
        assert self._spread is not None
        self._spread.add(on_host)
        proposals = self.options.proposals
        count = self.options.chains * self.options.samples * proposals
        self.evaluations += count
        return self._call(
            "weights",
            partial(make_log_weights, self.target, proposals, self.target.formula.rows_at_once(count)),
            positions,
            self._spread.factors(),
            self._noise(2, count * self.target.dim),
            self.target.arguments,
        )

    def _noise(self, purpose: int, size: int) -> jax.Array:
        return normals(self.seed.child(purpose, self.visits), noise_size(size))

    def _log_densities(self, rows: np.ndarray) -> np.ndarray:
        self.evaluations += len(rows)
        make = partial(make_log_densities, self.target, self.target.formula.rows_at_once(len(rows)))
        return np.asarray(self._call("densities", make, jnp.asarray(rows), self.target.arguments))

    @cached_property
    def component(self) -> WeightedDraws:
        """The kept states, each as good as the other, and the density that they stand for."""
        states = np.zeros((int(self.target.dim == 0), self.target.dim))
        if self.failure is not None:
            states = states[:0]
        elif self.visits:
            states = self._kept.rows(self.options.kernel.burn_in)
        values: SiteRows = {}
        if len(states):
            key = ("values", self.target.site_structure)
            make, given = (
                partial(make_values, self.target),
                (self.target.arguments, self.target.site_graph.consts),
            )
            call = partial(self.executables.call, key, make)
            if self.target.slp.summation is not None:  # of one state, what was summed out has many values
                states = np.resize(states, (max(len(states), _DRAWS), self.target.dim))
            values = self.target.named(in_batches(lambda rows: call(rows, given), [states], _ROWS))
            values = completed(self.target.slp, values, len(states), self.seed.child(1 << 20))
        weights = np.full(len(states), 1 / max(1, len(states)))
        slp = self.target.slp
        return WeightedDraws(slp.outline, values, weights, self.log_prob, self.target.inert, slp)

    def log_prob(self, values: SiteValues) -> float:
        """log gamma_k - log Z_k of one draw, in the coordinates of the program."""
        row = tuple(jnp.asarray(values[site.name], site.dtype) for site in self.target.sites)
        make = partial(make_log_joint, self.target)
        joint = float(self._call("log_joint", make, row, self.target.arguments))
        return joint + log_share(self.target.slp, values) - self.log_evidence

    def _in_batches(self, what: str, make: Callable[[], Any], columns: Sequence[np.ndarray]) -> Any:
        return in_batches(lambda rows: self._call(what, make, rows, self.target.arguments), columns, _ROWS)

    def _call(self, what: str, make: Callable[[], Callable[..., Any]], *args: Any) -> Any:
        return self.executables.call((what, self.target.structure), make, *args)
