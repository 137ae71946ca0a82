"""What a path asks the engine for."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from pathmix.engine import stablehlo
from pathmix.engine.members import takes_turns
from pathmix.engine.noise import Normals, noise_size
from pathmix.engine.requests import Asking, Request, asked
from pathmix.guides.base import Guide, Params
from pathmix.program.seeds import Seed
from pathmix.target.formula import CALL_BYTES
from pathmix.target.target import Target
from pathmix.training.compiled import (
    constrained_types,
    make_constrain,
    make_marked,
    make_plain,
    make_sample,
    marked_types,
    plain_types,
)
from pathmix.training.estimators import Gradient, Seen
from pathmix.training.jumps import Marked
from pathmix.training.loop import (
    DRAWING,
    GIVEN,
    TRAINING,
    Mode,
    Progress,
    Stretch,
    TrainingState,
    loop_types,
    make_loop,
    noise_width,
)
from pathmix.training.minibatches import Minibatches

_MAX_STEPS = 1024  # per compiled call; progress and Ctrl-C wait for one call at most
_MIN_STEPS = 32
_PLAIN_ROWS = 1_000  # vectors whose densities are computed in one call
_MARKED_ROWS = 64  # vectors whose switches are looked at in one call


@dataclass(frozen=True, eq=False)
class Calls:
    """The compiled functions of a path, as requests."""

    target: Target
    guide: Guide
    optimizer: optax.GradientTransformation
    gradient: Gradient
    particles: int
    minibatch_bytes: int  # that the minibatches of a step take

    @cached_property
    def noise(self) -> int:
        """Numbers that one call of the loop takes."""
        return noise_size(_MIN_STEPS * self._step_noise)

    @cached_property
    def steps(self) -> int:
        """Steps that one call of the loop can take."""
        fitting = CALL_BYTES // max(self.minibatch_bytes, 1)
        return max(1, min(_MAX_STEPS, self.noise // self._step_noise, fitting))

    def train(
        self,
        state: TrainingState,
        seed: Seed,
        indices: tuple[np.ndarray, ...],
        powers: np.ndarray,
        rates: np.ndarray,
        count: int,
        log_c: float,
    ) -> Asking[tuple[TrainingState, np.ndarray, int]]:
        """The state after `count` more steps, the ELBO of each, and how many of them were skipped."""
        noise = Normals(seed, self.noise, count * self._step_noise)
        stretch = Stretch(state, noise, indices, powers, rates, count, float(log_c))
        ((state, progress),) = yield from asked([self._loop(TRAINING, stretch)])
        return state, np.array(progress.history[:count]), int(progress.unusable)

    def drawn(self, state: TrainingState, seed: Seed, count: int) -> Asking[Seen]:
        """What draws of a guide come upon."""
        noises, per_call = [], self.steps * self.particles
        for block in range(-(-count // per_call)):
            steps = -(-min(count - block * per_call, per_call) // self.particles)
            own = seed.child(block) if block else seed
            noises.append(Normals(own, self.noise, steps * self._step_noise))
        return (yield from self._seen(DRAWING, state, noises, count))

    def given(self, state: TrainingState, vectors: np.ndarray) -> Asking[Seen]:
        """What there is at some vectors."""
        width, per_call = noise_width(self.guide, self.target.dim), self.steps * self.particles
        noises = []
        for start in range(0, len(vectors), per_call):
            part = vectors[start : start + per_call]
            rows = np.zeros((self.noise // width, width), part.dtype)
            rows[: len(part), : self.target.dim] = part
            noises.append(np.pad(rows.ravel(), (0, self.noise - rows.size)))
        return (yield from self._seen(GIVEN, state, noises, len(vectors)))

    def plainly(self, vectors: np.ndarray) -> Asking[Seen]:
        """Densities of vectors, by themselves: a fifth of what training has to compile."""
        rows = _PLAIN_ROWS
        build = partial(make_plain, self.target.formula, self.target.formula.rows_at_once(rows))
        key, volume = ("plain", self.target.structure), self.target.graphs.density.volume
        answers = yield from asked(
            [
                Request(
                    key,
                    build,
                    self.target.arguments,
                    part,
                    footprint=rows * volume,
                    comes_again=not takes_turns(),
                    types=partial(plain_types, self.target.formula, rows),
                )
                for part in _filled_up(vectors, rows)
            ]
        )
        return jax.tree.map(
            lambda *parts: np.concatenate(parts)[: len(vectors)], *(Seen(*a) for a in answers)
        )

    def constrained(self, vectors: np.ndarray) -> Asking[list[np.ndarray]]:
        """The values that vectors stand for."""
        key = ("constrain", self.target.structure, vectors.shape)
        build = partial(make_constrain, self.target.formula)
        types = partial(constrained_types, self.target.formula, len(vectors))
        request = Request(key, build, self.target.arguments, vectors, types=types)
        (values,) = yield from asked([request])
        return values

    def marked(self, vectors: np.ndarray) -> Asking[Marked]:
        """Densities of vectors, and the marks of the switches on the way to them."""
        answers = yield from asked(self._marked(vectors))
        return Marked(*(np.concatenate(column)[: len(vectors)] for column in zip(*answers, strict=True)))

    def sampled(self, params: Params, seed: Seed, count: int) -> Asking[np.ndarray]:
        """Draws of a guide before truncation."""
        dim = self.target.dim
        size = noise_size(count * self.guide.noise_size(dim))
        build = partial(make_sample, self.guide, dim, count)
        key = ("sample", self.guide, dim, count, size)
        number = jnp.result_type(*jax.tree.leaves(params))
        types = partial(stablehlo.types, (count, dim), number)
        request = Request(key, build, (), (params, Normals(seed, size, size)), types=types)
        (draws,) = yield from asked([request])
        return draws

    def rehearsal(self, state: TrainingState, minibatches: Minibatches, *, with_marks: bool) -> list[Request]:
        """Calls that compute nothing."""
        if with_marks:  # which may ask for another gradient
            return self._marked(np.zeros((1, self.target.dim)))
        indices, powers = minibatches.rows(0, self.steps), np.ones(self.steps)
        noise = Normals(Seed.of(0), self.noise, 0)
        return [self._loop(TRAINING, Stretch(state, noise, indices, powers, powers, 0, 0.0))]

    def _marked(self, vectors: np.ndarray) -> list[Request]:
        chunk = self.target.formula.rows_at_once(_MARKED_ROWS)
        build = partial(make_marked, self.target.formula, self.target.signs, chunk)
        key = ("marked", self.target.structure, self.target.signs)
        return [
            Request(key, build, self.target.arguments, rows, types=self._marked_types)
            for rows in _filled_up(vectors, _MARKED_ROWS)
        ]

    def _marked_types(self) -> Any:
        return marked_types(self.target.formula, len(self.target.switches), _MARKED_ROWS)

    def _seen(self, mode: Mode, state: TrainingState, noises: Sequence[Any], count: int) -> Asking[Seen]:
        per_call, requests, ones = self.steps * self.particles, [], np.ones(self.steps)
        for block, noise in enumerate(noises):
            steps = -(-min(count - block * per_call, per_call) // self.particles)
            requests.append(self._loop(mode, Stretch(state, noise, (), ones, ones, steps, 0.0)))
        answers = yield from asked(requests)
        seen = [progress.seen for _, progress in answers]
        return jax.tree.map(lambda *parts: np.concatenate([part.ravel() for part in parts])[:count], *seen)

    def _loop(self, mode: Mode, stretch: Stretch) -> Request:
        how = (self.gradient, self.particles, self.steps)
        build = partial(make_loop, self.target.formula, self.guide, self.optimizer, *how)
        return Request(
            ("loop", self.target.structure, self.guide, *how, self.noise, bool(stretch.indices)),
            build,
            self.target.arguments,
            stretch,
            common=mode,
            footprint=8 * self.noise + 2 * self.particles * self.target.graphs.density.volume,
            ignored=_seen if mode is TRAINING else None,
            types=partial(loop_types, stretch.state, self.particles, self.steps),
        )

    @cached_property
    def _step_noise(self) -> int:
        return self.particles * noise_width(self.guide, self.target.dim)


def _seen(answer: tuple[TrainingState, Progress]) -> Seen:
    return answer[1].seen


def _filled_up(vectors: np.ndarray, size: int) -> list[np.ndarray]:
    """Blocks of one size; the last one is filled up by repetition."""
    count = len(vectors)
    return [vectors[np.arange(start, start + size) % count] for start in range(0, count, size)]
