"""One path under training: its target, guide, optimiser state, and how it fares."""

import copy
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from pathmix.engine.batching import in_batches
from pathmix.engine.executables import Executables
from pathmix.engine.noise import noise_size, normals
from pathmix.guides.base import Guide, Params, SplitGuide
from pathmix.posterior.fitted import GradientKind
from pathmix.program.dependence import NOTHING, Sites
from pathmix.program.seeds import Seed
from pathmix.program.slp import Flaw
from pathmix.target.inert import reaching
from pathmix.target.target import CALL_BYTES, Target
from pathmix.training.compiled import (
    Densities,
    make_densities,
    make_draw,
    make_log_prob,
    make_sample,
    make_unconstrain,
)
from pathmix.training.estimates import ElboEstimate, Rise, estimated, rise_between
from pathmix.training.estimators import OWN_MINIBATCHES, Gradient
from pathmix.training.jumps import Marked, tried_switches
from pathmix.training.loop import Progress, TrainingState, make_train
from pathmix.training.minibatches import Minibatches
from pathmix.training.starts import Start, likelihood_powers

_MAX_STEPS = 1024  # per compiled call; progress and Ctrl-C wait for one call at most
_MIN_STEPS = 32
_ENOUGH_ACCEPTED = 0.2  # of the draws wanted for an ELBO; with fewer inside, more are tried
_DRAW_ROWS = 256  # prior draws unconstrained at once
_RISE_SAMPLES = 256
_DENSITY_ROWS = 64  # vectors whose density is computed at once


@dataclass(frozen=True)
class TrainingOptions:
    optimizer: optax.GradientTransformation
    particles: int
    elbo_samples: int
    annealing: float = 0.0  # share of a start's first stretch with a tempered likelihood
    adapt_gradient: bool = True  # to jumps of the density
    rejection_tries: int = 20


class Turn(NamedTuple):
    """What a start did before other paths get their turn."""

    steps: int
    elbo: float


class PathFit:
    """The state of one path through all phases."""

    def __init__(
        self,
        target: Target,
        guide: Guide,
        estimator: GradientKind,
        options: TrainingOptions,
        executables: Executables,
        seed: Seed,
    ) -> None:
        self.target, self.guide = target, guide
        self.gradient = Gradient(estimator)
        self.jumping = NOTHING  # sites that move a jump of the density
        self._may_jump = estimator == "reparam"  # without being seen
        self._harmless: frozenset[int] = frozenset()  # switches that flip without a jump
        self.options, self.executables = options, executables
        self.training_seed, self.elbo_seed, self.minibatch_seed = (seed.child(i) for i in range(3))
        self.vectors = np.zeros((0, target.dim))  # prior draws, unconstrained
        self.start: Start | None = None  # the best one so far
        self.steps = 0  # of all starts
        self.blocks = 0
        self.unusable = 0
        self.evaluations = 0
        self.estimate: ElboEstimate | None = None
        self.rise: Rise | None = None
        self._estimated_after: int | None = None  # steps
        self.inert_reach = False  # masked elements that were left out change the density after all
        self.dropped = False
        self.failure: Exception | None = None

    @property
    def params(self) -> Params:
        assert self.start is not None
        return self.start.state.params

    @property
    def history(self) -> np.ndarray:
        """The ELBO at each step of the best start."""
        return np.concatenate([np.zeros(0), *(self.start.history if self.start else ())])

    @property
    def particles(self) -> int:
        """A leave-one-out baseline needs company."""
        alone = self.gradient.estimator == "reparam"
        return self.options.particles if alone else max(self.options.particles, 2)

    @property
    def minibatches(self) -> Minibatches:
        count = self.particles if OWN_MINIBATCHES[self.gradient.estimator] else 1
        return Minibatches(self.target.slp.plates, count, self.minibatch_seed)

    @property
    def trainable(self) -> bool:
        return self.target.dim > 0 and self.failure is None and self.flaw is None

    @property
    def flaw(self) -> Flaw | None:
        return self.target.slp.facts.flaw

    @property
    def elbo(self) -> float:
        return -math.inf if self.estimate is None or self.failure is not None else self.estimate.elbo

    def initialise(self, draws: dict[str, np.ndarray], followers: int = 0) -> float:
        """Match the guide to prior draws inside the region, and the gradient to the density's jumps.

        Returns the smallest finite log gamma among the first draws, prior runs of this path (for d_min).
        """
        self.vectors = self.unconstrained(draws)
        self.start = self.start_from(self.vectors)
        if self.flaw is not None:
            return math.inf
        found = self.log_densities(self.vectors)
        if np.any(inside := np.asarray(found.inside)):
            # Supports of observed sites are not conditions of discovery, so prior draws may lie outside.
            self.start = self.start_from(self.vectors[inside])
        if self._may_jump and self.target.dim:
            self.jumping = self._jumps_between(self.vectors, np.asarray(found.marks))
            if self.options.adapt_gradient and np.any(np.isneginf(np.asarray(found.of_sites)[inside])):
                self.gradient = Gradient("truncated")  # to where the density is not zero
            elif self.options.adapt_gradient and self.jumping:
                self.gradient = self._gradient_for(self.target.coordinates_of(self.jumping))
        of_followers = np.asarray(found.of_sites)[:followers]
        return float(np.min(of_followers[np.isfinite(of_followers)], initial=np.inf))

    def _adapt_to(self, start: Start) -> None:
        """Match the gradient to jumps that the guide has come to, maybe far from all prior draws."""
        if self.options.adapt_gradient and (jumping := self._jumps_at(start.state.params)):
            self.jumping = jumping
            self.gradient = self._gradient_for(self.target.coordinates_of(jumping))

    def _jumps_at(self, params: Params) -> Sites:
        """The sites that move a jump where a guide is and its gradient is blind to it."""
        if self.gradient.estimator != "reparam" or not self.target.switches:
            return NOTHING
        draws, _ = self._sampled(params, self.elbo_seed.child(0), self.options.elbo_samples)
        return self._jumps_between(draws[:_DENSITY_ROWS])

    def _jumps_between(self, vectors: np.ndarray, marks: np.ndarray | None = None) -> Sites:
        """The sites that move a jump, as far as flips between some vectors show."""
        marks = self._marked(vectors).marks if marks is None else marks
        found = tried_switches(self._marked, vectors, marks, self._harmless)
        self._harmless |= found.harmless
        return NOTHING.union(*(self.target.switches[switch] for switch in found.jumping))

    def _marked(self, vectors: np.ndarray) -> Marked:
        found = self.log_densities(vectors)
        return Marked(np.asarray(found.of_vectors), np.asarray(found.marks))

    def _gradient_for(self, part: tuple[bool, ...]) -> Gradient:
        """One that is unbiased where the density jumps as the coordinates of `part` move."""
        if all(part) or not isinstance(self.guide, SplitGuide):
            return Gradient("score")
        return Gradient("mixed", part)

    def start_from(self, vectors: np.ndarray) -> Start:
        """A guide matched to some vectors."""
        params = self.guide.init(vectors)
        return Start(TrainingState(params, self.options.optimizer.init(params)))

    def unconstrained(self, draws: dict[str, np.ndarray]) -> np.ndarray:
        """The vectors that stand for draws of the sites."""
        columns = [draws[site.name] for site in self.target.slp.sites]
        if self.target.dim == 0:
            return np.zeros((len(columns[0]) if columns else 1, 0))
        return self._in_batches("unconstrain", partial(make_unconstrain, self.target), columns, _DRAW_ROWS)

    def log_densities(self, vectors: np.ndarray) -> Densities:
        rows = self.target.rows_at_once(_DENSITY_ROWS)
        make = partial(make_densities, self.target, rows, marked=self._may_jump)
        self.evaluations += len(vectors)
        return self._in_batches("densities", make, [vectors], _DENSITY_ROWS)

    def centre(self, params: Params) -> np.ndarray:
        """The vector in the middle of a guide."""
        return np.asarray(self.guide.centre(params))

    def location(self, params: Params) -> dict[str, np.ndarray]:
        """The free sites in the middle of a guide."""
        centre = jnp.asarray(self.centre(params))
        values, _ = self.target.coordinates.constrain(centre, self.target.arguments.map)
        sites = zip(self.target.slp.sites, values, strict=True)
        return {site.name: np.asarray(value) for site, value in sites if site.pinned is None}

    def _in_batches(self, what: str, make: Callable[[], Any], columns: list[np.ndarray], size: int) -> Any:
        return in_batches(lambda rows: self._call(what, make, rows, self.target.arguments), columns, size)

    def warm_up(self, draws: dict[str, np.ndarray]) -> None:
        """Compile what training needs, unless a path of the same structure already did.

        Runs beside everything else, so it must not touch this object.
        """
        if self.trainable and self._key("unconstrain") not in self.executables:
            stand_in = copy.copy(self)
            stand_in.initialise(draws)
            assert stand_in.start is not None
            stand_in._block(stand_in.start, 0, 0.0)

    def train(self, iterations: int, log_c: float) -> Iterator[Turn]:
        """Take the best start further."""
        assert self.start is not None
        return self.advance(self.start, iterations, log_c)

    def advance(self, start: Start, iterations: int, log_c: float) -> Iterator[Turn]:
        """Take a start further, a block of steps each turn. What has been done stays, should nobody go on."""
        if start.steps == 0:
            start.annealed = round(self.options.annealing * iterations)
        left, half, quarter = iterations, iterations // 2, -(-iterations // 4)
        while left > 0:
            if left == half:
                self._adapt_to(start)
            if left == quarter:
                start.earlier = start.state.params
            # The last half and the last quarter start with blocks of their own.
            stop = next(stop for stop in (half, quarter, 0) if left > stop)
            count = min(left - stop, self._block_steps)
            start.state, progress = self._block(start, count, log_c)
            elbos = np.asarray(progress.history)[:count]
            start.history.append(elbos)
            start.steps += count
            self.unusable += int(progress.unusable)
            self.blocks += 1
            self.steps += count
            self.evaluations += count * self.particles
            left -= count
            usable = elbos[np.isfinite(elbos)]
            yield Turn(count, float(usable.mean()) if len(usable) else -math.inf)

    def _block(self, start: Start, count: int, log_c: float) -> tuple[TrainingState, Progress]:
        """The state after `count` more steps, all in one compiled call."""
        steps, size = self._block_steps, self._block_size
        make = partial(make_train, self.target, self.guide, self.options.optimizer, self.gradient)
        return self._call(
            ("train", self.gradient, self.particles, steps, size),
            lambda: make(self.particles, steps),
            start.state,
            normals(self.training_seed.child(self.blocks), size),
            self.minibatches.rows(self.blocks, steps),
            likelihood_powers(start, steps),
            count,
            float(log_c),  # a NumPy scalar would be another type, and compile again
            self.target.arguments,
        )

    @property
    def _step_noise(self) -> int:
        return self.particles * self.guide.noise_size(self.target.dim)

    @property
    def _block_size(self) -> int:
        return noise_size(_MIN_STEPS * self._step_noise)

    @property
    def _block_steps(self) -> int:
        fitting = CALL_BYTES // max(self.minibatches.bytes_per_step, 1)
        return max(1, min(_MAX_STEPS, self._block_size // self._step_noise, fitting))

    def estimate_elbo(self) -> float:
        """The truncated ELBO on the full data (Eq. 11), from the guide as it is now."""
        if self._estimated_after == self.steps or self.flaw is not None:
            return self.elbo
        self._estimated_after = self.steps
        wanted = self.options.elbo_samples if self.target.dim > 0 else 1
        log_ratios, inside = np.zeros(0), np.zeros(0, bool)
        for attempt in range(self.options.rejection_tries):
            ratios, hits = self.log_ratios(self.elbo_seed.child(attempt), wanted)
            log_ratios, inside = np.append(log_ratios, ratios), np.append(inside, hits)
            if np.sum(inside & ~np.isneginf(log_ratios)) >= _ENOUGH_ACCEPTED * wanted:
                break
        self.estimate = estimated(log_ratios, inside)
        return self.estimate.elbo

    def weigh(self) -> None:
        """The final ELBO, and how much of it the last quarter of training brought."""
        self.estimate_elbo()
        if self.target.inert and self.start is not None and self.flaw is None:
            drawn, inside = self.draw(self.elbo_seed.child(0), _DENSITY_ROWS)
            rows = {name: values[inside] for name, values in drawn.items()}
            self.inert_reach = bool(inside.any()) and reaching(
                self.target.slp, self.target.inert, rows, self.target.inert_draws
            )
        if self.start is None or self.start.earlier is None:
            return
        self.jumping |= self._jumps_at(self.params)
        count = min(self.options.elbo_samples, _RISE_SAMPLES)
        earlier, now = (
            np.where(inside, ratios, np.nan)
            for ratios, inside in (
                self._log_ratios(params, self.elbo_seed.child(0), count)
                for params in (self.start.earlier, self.params)
            )
        )
        self.rise = rise_between(earlier, now)

    def log_ratios(self, seed: Seed, count: int) -> tuple[np.ndarray, np.ndarray]:
        """log gamma - log q~ of draws of the guide before truncation, and which are inside the region."""
        return self._log_ratios(self.params, seed, count)

    def _log_ratios(self, params: Params, seed: Seed, count: int) -> tuple[np.ndarray, np.ndarray]:
        draws, log_q = self._sampled(params, seed, count)
        density = self.log_densities(draws)
        return np.asarray(density.of_vectors) - log_q, np.asarray(density.inside)

    def _sampled(self, params: Params, seed: Seed, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Draws of the guide before truncation, and their log q~."""
        dim = self.target.dim
        size = noise_size(count * self.guide.noise_size(dim))
        key = ("sample", self.guide, dim, count, size)
        make = partial(make_sample, self.guide, dim, count)
        draws, log_q = self.executables.call(key, make, params, normals(seed, size))
        return np.asarray(draws), np.asarray(log_q)

    def draw(self, seed: Seed, count: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Sites of `count` draws of the guide before truncation, and which are inside the region."""
        # A few sizes for all counts, since every size is compiled.
        rounded = 2 ** max(6, math.ceil(math.log2(count)))
        size = self.target.rows_at_once(rounded)
        noise = noise_size(size * self.guide.noise_size(self.target.dim))
        # Densities are computed once more only where some are zero.
        weighed = self.estimate is not None and self.estimate.zero_density > 0
        make = partial(make_draw, self.target, self.guide, size, weighed=weighed)
        results = [
            self._call(
                ("draw", size, noise, weighed),
                make,
                self.params,
                normals(seed.child(number), noise),
                self.target.arguments,
            )
            for number in range(-(-rounded // size))
        ]
        return jax.tree.map(lambda *parts: np.concatenate(parts)[:count], *results)

    def log_prob(self, values: dict[str, np.ndarray]) -> float:
        """log q~ of one draw, in the coordinates of the program."""
        row = tuple(jnp.asarray(values[site.name], site.dtype) for site in self.target.slp.sites)
        arguments = self.target.arguments
        make = partial(make_log_prob, self.target, self.guide)
        return float(self._call("log_prob", make, self.params, row, arguments))

    def _call(self, what: Any, build: Callable[[], Callable[..., Any]], *args: Any) -> Any:
        return self.executables.call(self._key(what), build, *args)

    def _key(self, what: Any) -> Any:
        return (what, self.target.structure, self.guide, self._may_jump)
