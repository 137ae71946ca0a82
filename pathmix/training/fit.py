"""One path under training: its target, guide, optimiser state, and how it fares.

What it needs computed it asks for (`engine/requests.py`): paths of one structure are computed together.
"""

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pathmix.engine.batching import in_batches
from pathmix.engine.executables import Executables
from pathmix.engine.members import takes_turns
from pathmix.engine.requests import Asking, Request
from pathmix.guides.base import Guide, Params, moments
from pathmix.posterior.evidence import UNKNOWN, Evidence
from pathmix.posterior.fitted import FittedPath, GradientKind
from pathmix.program.seeds import Seed
from pathmix.program.slp import Flaw
from pathmix.program.values import SiteRows
from pathmix.target.inert import reaching
from pathmix.target.on_host import constrained, unconstrained
from pathmix.target.target import Target
from pathmix.training.calls import Calls
from pathmix.training.compiled import make_unconstrain
from pathmix.training.drawing import draw
from pathmix.training.estimates import ElboEstimate, Rise, estimated, rise_between
from pathmix.training.estimators import OWN_MINIBATCHES, Gradient, Seen
from pathmix.training.loop import TrainingState
from pathmix.training.minibatches import Minibatches
from pathmix.training.options import Told, TrainingOptions, Turn
from pathmix.training.settling import last_steps
from pathmix.training.starts import Start, falling_rates, likelihood_powers
from pathmix.training.watch import JumpWatch

_ENOUGH_ACCEPTED = 0.2  # of the draws wanted for an ELBO; with fewer inside, more are tried
_DRAW_ROWS = 256  # prior draws unconstrained at once
_RISE_SAMPLES = 256
# Prior draws whose densities are computed, for d_min and to see whether they can be zero: all, unless they
# take long.
_FEWEST_TRIED = 64
_TRIED_BYTES = 2**25
_INERT_ROWS = 64


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
        self.watch = JumpWatch(target, guide, [])
        if estimator == "reparam" and target.dim:  # which would not see them
            switches = executables.once(("switches", target.structure, target.signs), lambda: target.switches)
            self.watch = JumpWatch(target, guide, switches)
        self.options, self.executables = options, executables
        self.training_seed, self.elbo_seed, self.minibatch_seed = (seed.child(i) for i in range(3))
        self.vectors = np.zeros((0, target.dim))  # prior draws, unconstrained
        self._calls: Calls | None = None
        self.start: Start | None = None  # the best one so far
        self.steps = 0  # of all starts
        self.blocks = 0
        self.unusable = 0
        self.evaluations = 0
        self.estimate: ElboEstimate | None = None
        self.log_ratios: np.ndarray | None = None  # of the draws of that estimate, -inf outside
        self.evidence: Evidence = UNKNOWN
        self.rise: Rise | None = None
        self._estimated_after: int | None = None  # steps
        self.inert_reach = False  # masked elements that were left out change the density after all
        self.dropped = False
        self.was_set_aside = False  # after a first look, untrained
        self.was_cut_off = False  # by Ctrl-C, after a first look
        self.met_nan = False  # in a first look
        self.has_settled = False  # so that the last stretch of training was cut short
        self.starts_agreed = False  # all of a race, on where the posterior is
        self.starts_apart = False  # some of a race ended elsewhere, about as good
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
    def was_begun(self) -> bool:
        """Whether anything was done that can be kept, or there is nothing to do."""
        return self.steps > 0 or self.was_set_aside or not self.trainable

    @property
    def trainable(self) -> bool:
        return self.target.dim > 0 and self.failure is None and self.flaw is None

    @property
    def searchable(self) -> bool:
        """Whether there is more to find out about its evidence."""
        return self.trainable and self.estimate is not None and self.estimate.broken_density == 0

    @property
    def finite_vectors(self) -> np.ndarray:
        """Prior draws without those that overflow."""
        return self.vectors[np.all(np.isfinite(self.vectors), axis=1)]

    @property
    def flaw(self) -> Flaw | None:
        return self.target.flaw

    @property
    def elbo(self) -> float:
        return -math.inf if self.estimate is None or self.failure is not None else self.estimate.elbo

    @property
    def calls(self) -> Calls:
        """The compiled functions, as the gradient wants them now."""
        if self._calls is None or self._calls.gradient != self.gradient:
            self._calls = Calls(
                self.target,
                self.guide,
                self.options.optimizer,
                self.gradient,
                self.particles,
                self.minibatches.bytes_per_step,
            )
        return self._calls

    def initialise(self, draws: SiteRows, followers: int = 0) -> Asking[float]:
        """Match the guide to prior draws inside the region, and the gradient to the density's jumps.

        Gives the smallest finite log gamma among the first draws, prior runs of this path (for d_min).
        """
        self.vectors = self.unconstrained(draws)
        self.start = self._first_start(self.vectors)
        if self.flaw is not None or self.target.dim == 0:
            return math.inf
        if self.watch.switches:
            found = yield from self.calls.marked(self.vectors)
            self.evaluations += len(self.vectors)
        else:
            found = yield from self.screened(self.vectors[: self._tried])
        inside = found.inside
        if np.any(inside) and not np.all(inside):
            # Supports of observed sites are not conditions of discovery, so prior draws may lie outside.
            self.start = self._first_start(self.vectors[inside])
        if self.gradient.estimator == "reparam":
            yield from self.watch.look(self.calls, self.vectors, getattr(found, "marks", None))
            if self.options.adapt_gradient:
                if np.any(np.isneginf(found.log_joint[inside])):
                    self.gradient = Gradient("truncated")  # to where the density is not zero
                else:
                    self.gradient = self.watch.gradient
        of_followers = found.log_joint[:followers]
        return float(np.min(of_followers[np.isfinite(of_followers)], initial=np.inf))

    @property
    def _tried(self) -> int:
        """How many prior draws are looked at, where none of them can be outside of the region."""
        if self.target.region.live or self.gradient.estimator == "score":
            return len(self.vectors)
        return max(_FEWEST_TRIED, _TRIED_BYTES // max(self.target.graphs.density.volume, 1))

    def rehearsal(self) -> list[Request]:
        """Requests that compile what is needed first. Made beside everything else, so they leave no trace."""
        params = self.guide.init(np.zeros((2, self.target.dim)))
        state = TrainingState(params, self.options.optimizer.init(params))
        return self.calls.rehearsal(state, self.minibatches, with_marks=bool(self.watch.switches))

    def _look_again(self, params: Params) -> Asking[None]:
        """For jumps that the guide has come to, maybe far from all prior draws."""
        if self.gradient.estimator == "reparam" and self.watch.switches:
            yield from self.watch.look_at_guide(self.calls, params, self.elbo_seed.child(0))

    def _first_start(self, vectors: np.ndarray) -> Start:
        if not self.options.at_mean:
            return self.start_from(vectors)
        # Vectors of which each coordinate has mean zero and scale one, apart from all others.
        dim = self.target.dim
        unit = np.sqrt(dim) * np.concatenate([np.eye(dim), -np.eye(dim)])
        return self.start_from(moments(vectors)[0] + np.tile(unit, (2, 1)))

    def go_on_from(self, before: FittedPath) -> None:
        """Take over what an earlier run has reached; its optimiser starts anew."""
        assert before.guide is not None
        params = jax.tree.map(np.asarray, before.guide.params)
        state = TrainingState(params, self._optimizer_state(params))
        self.start = Start(
            state, steps=len(before.history), history=[before.history], phases=list(before.phases)
        )
        self.steps, self.evaluations = before.steps, self.evaluations + before.likelihood_evaluations
        self.blocks = before.steps  # whose noise is another one

    def end_phase(self) -> None:
        """A phase of training is over, for this path."""
        if self.start is not None and self.start.steps > max(self.start.phases, default=0):
            self.start.phases.append(self.start.steps)

    def start_from(self, vectors: np.ndarray) -> Start:
        """A guide matched to some vectors."""
        params = jax.tree.map(np.asarray, self.guide.init(vectors))
        return Start(TrainingState(params, self._optimizer_state(params)))

    def _optimizer_state(self, params: Params) -> Any:
        """At its start; most optimisers start the same whatever the parameters, and are asked once."""
        optimizer = self.options.optimizer
        shapes = tuple(leaf.shape for leaf in jax.tree.leaves(params))
        key = ("optimizer", jax.tree.structure(params), shapes)

        def common() -> Any:
            states = [optimizer.init(jax.tree.map(lambda leaf, by=by: leaf + by, params)) for by in (0, 1)]
            one, other = ([np.asarray(leaf) for leaf in jax.tree.leaves(state)] for state in states)
            same = all(map(np.array_equal, one, other))
            return jax.tree.unflatten(jax.tree.structure(states[0]), one) if same else None

        found = self.executables.once(key, common)
        return optimizer.init(params) if found is None else found

    def unconstrained(self, draws: SiteRows) -> np.ndarray:
        """The vectors that stand for draws of the sites."""
        columns = self.target.columns(draws)
        if self.target.dim == 0:
            return np.zeros((max(len(rows) for rows in draws.values()) if draws else 1, 0))
        arguments = self.target.arguments
        found = unconstrained(self.target.coordinates, arguments.map, columns)
        if found is not None:
            return found
        key = ("unconstrain", self.target.structure)
        make = partial(make_unconstrain, self.target)
        return in_batches(lambda rows: self.executables.call(key, make, rows, arguments), columns, _DRAW_ROWS)

    def constrained(self, vectors: np.ndarray) -> Asking[list[np.ndarray]]:
        """The values of the free sites that vectors stand for."""
        found = constrained(self.target.coordinates, self.target.arguments.map, vectors)
        return found if found is not None else (yield from self.calls.constrained(vectors))

    def densities(self, vectors: np.ndarray) -> Asking[Seen]:
        """log gamma and what belongs to it, at some vectors. Before there is a start, log_q is NaN."""
        self.evaluations += len(vectors)
        if self.start is None:
            seen = yield from self.calls.plainly(vectors)
            self.met_nan |= bool(np.any(np.isnan(seen.log_joint + seen.log_det) & seen.inside))
            return seen
        return (yield from self.calls.given(self.start.state, vectors))

    def screened(self, vectors: np.ndarray) -> Asking[Seen]:
        """The same, where nobody asks for log_q.

        Side by side, every number of members is compiled by itself: the loop waits for those of a race.
        """
        if takes_turns():
            return (yield from self.densities(vectors))
        self.evaluations += len(vectors)
        return (yield from self.calls.plainly(vectors))

    def centre(self, params: Params) -> np.ndarray:
        """The vector in the middle of a guide."""
        return np.asarray(self.guide.centre(params))

    def location(self, params: Params) -> dict[str, np.ndarray]:
        """The free sites in the middle of a guide."""
        centre = jnp.asarray(self.centre(params))
        values, _ = self.target.coordinates.constrain(centre, self.target.arguments.map)
        return {site.name: np.asarray(v) for site, v in zip(self.target.sites, values, strict=True)}

    def train(self, iterations: int, log_c: float, told: Told) -> Asking[None]:
        """Take the best start further."""
        assert self.start is not None
        return self.advance(self.start, iterations, log_c, told)

    def advance(
        self, start: Start, iterations: int, log_c: float, told: Told, *, looking: bool = True
    ) -> Asking[None]:
        """Take a start further, call by call. What has been done stays, should nobody go on.

        Halfway, `looking` for jumps may change the gradient. A start that has settled is as good as halfway.
        """
        if start.steps == 0:
            start.annealed = round(self.options.annealing * iterations)
        left, half, quarter = iterations, iterations // 2, -(-iterations // 4)
        begun = max(start.steps, start.annealed)
        if looking:
            self.has_settled = False
        while left > 0:
            rest = None
            if self.options.stop_early and left > half:
                rest = last_steps(start.history, start.steps - begun, left)
            settled = rest is not None and half > rest
            if (left == half or settled) and looking and self.options.adapt_gradient:
                before = self.gradient
                yield from self._look_again(start.state.params)
                if self.gradient.estimator == "reparam":
                    self.gradient = self.watch.gradient
                settled = settled and self.gradient == before  # by which it settled
            if settled and rest is not None:
                told(Turn(left - rest, start.level(start.steps - begun)))
                iterations, left, half, quarter = 2 * rest, rest, 0, -(-rest // 2)
                self.has_settled = looking
            if left == quarter:
                start.earlier = start.state.params
            # The last half and the last quarter start with calls of their own.
            stop = max(stop for stop in (half, quarter, 0) if left > stop)
            calls, block = self.calls, self.blocks
            count = min(left - stop, calls.steps)
            self.blocks += 1
            start.state, elbos, unusable = yield from calls.train(
                start.state,
                self.training_seed.child(block),
                self.minibatches.rows(block, calls.steps),
                likelihood_powers(start, calls.steps),
                falling_rates(left, iterations, calls.steps),
                count,
                log_c,
            )
            start.history.append(elbos)
            start.steps += count
            self.unusable += unusable
            self.steps += count
            self.evaluations += count * calls.particles
            left -= count
            usable = elbos[np.isfinite(elbos)]
            told(Turn(count, float(usable.mean()) if len(usable) else -math.inf))

    def estimate_elbo(self) -> Asking[None]:
        """The truncated ELBO on the full data (Eq. 11), from the guide as it is now."""
        if self._estimated_after == self.steps or self.flaw is not None:
            return
        self._estimated_after = self.steps
        if self.target.dim == 0:
            only = self.target.formula.density(jnp.zeros(0), self.target.arguments)
            self.evaluations += 1
            self.estimate = estimated(np.asarray(only.log_joint)[None], np.asarray(only.inside)[None])
            return
        wanted = self.options.elbo_samples
        log_ratios, inside, lost = np.zeros(0), np.zeros(0, bool), np.zeros(0, bool)
        for attempt in range(self.options.rejection_tries):
            found = yield from self._drawn(self.params, self.elbo_seed.child(attempt), wanted)
            log_ratios, inside = np.append(log_ratios, _log_ratios(found)), np.append(inside, found.inside)
            lost = np.append(lost, np.isnan(found.log_q) & ~np.isnan(found.log_joint + found.log_det))
            if np.sum(inside & ~np.isneginf(log_ratios)) >= _ENOUGH_ACCEPTED * wanted:
                break
        self.estimate = estimated(log_ratios, inside, lost)
        self.log_ratios = np.where(inside, log_ratios, -np.inf)

    def weigh(self) -> Asking[None]:
        """The final ELBO, and how much of it the last quarter of training brought."""
        yield from self.estimate_elbo()
        if self.target.inert and self.start is not None and self.flaw is None:
            seed = self.elbo_seed.child(0)
            drawn, inside = draw(self.executables, self.target, self.guide, self.params, seed, _INERT_ROWS)
            rows = {name: values[inside] for name, values in drawn.items()}
            self.inert_reach = bool(inside.any()) and reaching(
                self.target.slp, self.target.inert, rows, self.target.inert_draws
            )
        if self.start is None or self.start.earlier is None:
            return
        yield from self._look_again(self.params)
        count = min(self.options.elbo_samples, _RISE_SAMPLES)
        earlier, now = [], []
        for params, ratios in ((self.start.earlier, earlier), (self.params, now)):
            found = yield from self._drawn(params, self.elbo_seed.child(0), count)
            ratios.append(np.where(found.inside, _log_ratios(found), np.nan))
        self.rise = rise_between(*earlier, *now)

    def _drawn(self, params: Params, seed: Seed, count: int) -> Asking[Seen]:
        """What draws of a guide, before truncation, come upon."""
        assert self.start is not None
        self.evaluations += count
        state = self.start.state._replace(params=params)
        return (yield from self.calls.drawn(state, seed, count))


def _log_ratios(seen: Seen) -> np.ndarray:
    """log gamma - log q~, of draws of a guide."""
    return np.asarray(seen.log_joint + seen.log_det - seen.log_q)
