"""Proposals for the importance sampling of one path, from the guide on, from the prior on, and by SMC.

Where members of a path are exchangeable, proposals live where these are in order, and count for all orders.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from pathmix.engine.requests import Asking, Request, asked
from pathmix.evidence.mixture import Mixture
from pathmix.evidence.proposal import Proposal
from pathmix.evidence.symmetry import (
    Group,
    confirmed,
    exchangeable,
    make_constrain,
    make_ordered,
    make_shuffled,
    ordered_by,
)
from pathmix.evidence.tempered import Arrived, Population, evaluations, make_tempered
from pathmix.posterior.evidence import Efforts, Particles
from pathmix.program.seeds import Seed
from pathmix.program.values import SiteRows
from pathmix.training.fit import PathFit
from pathmix.training.importance import Importance, importance

BLOCK = 2_000  # draws that are made at once
_DEEP = (16, 16, 32, 32, 64)  # parts of a proposal, round by round
_DEEP_BLOCKS = 5
_WIDE_BLOCKS = 10
_ENOUGH = 0.5  # of the effective draws that a normal posterior would leave
_ENOUGH_DEEP = 0.1  # of all draws
PARTICLES = 8_192  # that stand for a path's posterior
_IN_POPULATION = 256
_POPULATIONS = 8


class Weighted(NamedTuple):
    """Draws of a proposal, with log gamma - log q."""

    vectors: np.ndarray
    log_ratios: np.ndarray


class Opinion(NamedTuple):
    """A proposal, and what importance sampling with it found."""

    proposal: Mixture
    found: Importance
    drawn: Weighted


class Tempered(NamedTuple):
    """What populations of particles found together."""

    log_evidence: float
    error: float
    spread: float  # between populations
    particles: Particles


@dataclass(frozen=True, eq=False)
class Search:
    """One path, and where its evidence is looked for."""

    fit: PathFit
    groups: tuple[Group, ...]  # of exchangeable members, of which the guide has chosen an order
    seed: Seed
    until: int  # evaluations of the path, beyond which no proposal is fitted

    @property
    def log_orders(self) -> float:
        return sum(group.log_order for group in self.groups)

    def from_guide(self) -> Asking[Weighted]:
        """Draws of the guide, with members in order."""
        vectors = yield from self.fit.calls.sampled(self.fit.params, self.seed.child(0), BLOCK)
        seen = yield from self.fit.densities(vectors)
        ratios = _where_inside(seen.log_joint + seen.log_det - seen.log_q, seen.inside)
        if self.groups:
            vectors, _ = yield from self._ordered(vectors)
        return Weighted(vectors, ratios)

    def from_prior(self) -> Asking[Opinion]:
        """Draws around the prior, many where they are cheap: narrow modes are met with by chance only."""
        wide = Mixture(np.ones(1), (self._around_prior,))
        blocks = max(1, min(_WIDE_BLOCKS, (self.until - self.fit.evaluations) // (4 * BLOCK)))
        drawn = yield from self.more(wide, self.seed.child(1), blocks)
        return Opinion(wide, importance(drawn.log_ratios), drawn)

    def drawn(self, proposal: Mixture, seed: Seed) -> Asking[Weighted]:
        """Draws of a proposal; those that are out of order count as zero, the others for all orders."""
        vectors = proposal.draw(seed.generator(), BLOCK)
        seen = yield from self.fit.densities(vectors)
        counted = seen.inside
        if self.groups:
            _, in_order = yield from self._ordered(vectors)
            counted = counted & in_order
        ratios = _where_inside(seen.log_joint + seen.log_det, counted) - proposal.log_prob(vectors)
        return Weighted(vectors, ratios + self.log_orders)

    def fitted(self, first: Weighted, seed: Seed, parts: Sequence[int]) -> Asking[Opinion | None]:
        """A proposal fitted to its own weighted draws, again and again, with so many parts each time."""
        best: Opinion | None = None
        drawn = first
        for number, count in enumerate(parts):
            found = yield from self._refitted(drawn, count, seed.child(number), 1)
            if found is None:
                break
            drawn = found.drawn
            if best is None or found.found.effective_draws > best.found.effective_draws:
                best = found
            if self.is_plain(found):
                break
        return best

    def deepened(self, first: Weighted, seed: Seed) -> Asking[Opinion | None]:
        """With many parts and draws, for posteriors that are bent or have several modes.

        It ends when a round finds no more than the one before it.
        """
        drawn, found, before = first, None, None
        for number, count in enumerate(_DEEP):
            found, before = (yield from self._refitted(drawn, count, seed.child(number), _DEEP_BLOCKS)), found
            if found is None:
                return before
            drawn = found.drawn
            if before is not None and found.found.good and before.found.good:
                share = found.found.effective_draws / found.found.draws
                if share > _ENOUGH_DEEP and abs(found.found.log_evidence - before.found.log_evidence) < 0.1:
                    break
        return found

    def _refitted(self, drawn: Weighted, count: int, seed: Seed, blocks: int) -> Asking[Opinion | None]:
        usable = np.isfinite(drawn.log_ratios)
        if usable.sum() < 4 or self.fit.evaluations + blocks * BLOCK > self.until:
            return None
        wanted = min(max(100.0, 5.0 * self.fit.target.dim, 20.0 * count), usable.sum() / 2)
        weights = tempered_weights(drawn.log_ratios[usable], wanted)
        fitted = Mixture.of(drawn.vectors[usable], weights, count, seed.child(0).generator())
        proposal = fitted.guarded(self._around_prior)
        fresh = yield from self.more(proposal, seed.child(1), blocks)
        return Opinion(proposal, importance(fresh.log_ratios), fresh)

    def is_plain(self, opinion: Opinion) -> bool:
        """Whether the posterior looks like one blob: one t and the guard leave enough draws."""
        found = opinion.found
        normal = found.draws / (1 + 0.035 * self.fit.target.dim)
        return len(opinion.proposal.parts) == 2 and found.good and found.effective_draws > _ENOUGH * normal

    def more(self, proposal: Mixture, seed: Seed, blocks: int) -> Asking[Weighted]:
        """Blocks of draws of a proposal."""
        found = []
        for number in range(blocks):
            found.append((yield from self.drawn(proposal, seed.child(number))))
        return Weighted(*map(np.concatenate, zip(*found, strict=True)))

    def particles(self, drawn: Weighted, seed: Seed) -> Asking[Particles]:
        """Some of the draws, as often as their weights say, with exchangeable members in any order."""
        generator = seed.generator()
        weights = np.exp(drawn.log_ratios - np.max(drawn.log_ratios))
        rows = generator.choice(len(weights), size=PARTICLES, p=weights / weights.sum())
        vectors = drawn.vectors[rows]
        if self.groups:
            sizes = [len(group.members) for group in self.groups]
            lots = [generator.random((PARTICLES, size)) for size in sizes]
            target = self.fit.target
            key = ("shuffled", target.structure, self.groups, vectors.shape)
            build = partial(make_shuffled, target, self.groups)
            (vectors,) = yield from asked([Request(key, build, target.arguments, (vectors, lots))])
        return Particles(vectors, np.full(PARTICLES, 1 / PARTICLES))

    def tempered(self, temperatures: int) -> Asking[Tempered | None]:
        """Tempered SMC from around the prior, where all orders of members are alike."""
        start, seed = self._around_prior, self.seed.child(2)
        wanted = _POPULATIONS * _IN_POPULATION
        inside, tried = [np.zeros((0, self.fit.target.dim))], 0
        for attempt in range(self.fit.options.rejection_tries):
            vectors = start.draw(seed.child(0, attempt).generator(), wanted)
            seen = yield from self.fit.densities(vectors)
            usable = np.isfinite(_where_inside(seen.log_joint + seen.log_det, seen.inside))
            inside.append(vectors[usable])
            tried += wanted
            if sum(map(len, inside)) >= wanted:
                break
        rows = np.concatenate(inside)
        if len(rows) < wanted:
            return None
        arrived = yield from self._populations(start, rows[:wanted], seed.child(1), temperatures)
        if any(float(one.temperature) < 1 for one in arrived):
            return None
        log_share = math.log(len(rows) / tried)
        return _averaged(arrived, log_share)

    def as_draws(self, found: Tempered) -> Asking[Weighted]:
        """Particles as if they were draws of a proposal with the same evidence, with members in order."""
        vectors, weights = found.particles
        if self.groups:
            vectors, _ = yield from self._ordered(vectors)
        shares = np.maximum(weights * len(weights), 1e-300)
        return Weighted(vectors, np.log(shares) + found.log_evidence)

    def _populations(
        self, start: Proposal, rows: np.ndarray, seed: Seed, temperatures: int
    ) -> Asking[list[Arrived]]:
        fit, words = self.fit, seed.words(_POPULATIONS)
        particles = rows.reshape(_POPULATIONS, _IN_POPULATION, -1)
        requests = [
            Request(
                ("tempered", fit.target.structure, _IN_POPULATION),
                partial(make_tempered, fit.target, _IN_POPULATION),
                fit.target.arguments,
                Population(_two_words(words[number]), particles[number], start, temperatures),
                footprint=_IN_POPULATION * fit.target.graphs.density.footprint,
            )
            for number in range(_POPULATIONS)
        ]
        arrived = yield from asked(requests)
        fit.evaluations += sum(evaluations(_IN_POPULATION, int(one.temperatures)) for one in arrived)
        return arrived

    @cached_property
    def _around_prior(self) -> Proposal:
        return Proposal.of(_usable(self.fit.vectors))

    def _ordered(self, vectors: np.ndarray) -> Asking[tuple[np.ndarray, np.ndarray]]:
        target = self.fit.target
        key = ("ordered", target.structure, self.groups, vectors.shape)
        build = partial(make_ordered, target, self.groups)
        (answer,) = yield from asked([Request(key, build, target.arguments, vectors)])
        return answer


def begin(fit: PathFit, draws: SiteRows, seed: Seed, efforts: Efforts) -> Asking[Search]:
    """A search, which knows the exchangeable members of the path; `draws` are of its prior."""
    groups: tuple[Group, ...] = ()
    until = fit.evaluations + efforts.draws
    if efforts.symmetry and fit.target.dim > 1:
        groups = yield from exchangeable(fit, draws)
    if groups:
        vectors = yield from fit.calls.sampled(fit.params, seed.child(3), BLOCK)
        key = ("constrain", fit.target.structure, vectors.shape)
        build = partial(make_constrain, fit.target)
        (values,) = yield from asked([Request(key, build, fit.target.arguments, vectors)])
        groups = yield from confirmed(fit, ordered_by(groups, values), values)
    return Search(fit, groups, seed, until)


def together(parts: Sequence[Weighted]) -> Weighted:
    """Draws of several proposals. Each part counts as it would alone: as if it told the whole evidence."""
    sizes = [len(part.vectors) for part in parts]
    return Weighted(
        np.concatenate([part.vectors for part in parts]),
        np.concatenate([part.log_ratios - math.log(size) for part, size in zip(parts, sizes, strict=True)]),
    )


def tempered_weights(log_ratios: np.ndarray, wanted: float) -> np.ndarray:
    """Weights to the highest power, up to one, that leaves so many effective draws."""
    shifted = log_ratios - np.max(log_ratios)
    low, high = 0.0, 1.0
    if _effective(np.exp(shifted)) >= wanted:
        return np.exp(shifted)
    for _ in range(40):
        middle = (low + high) / 2
        enough = _effective(np.exp(middle * shifted)) >= wanted
        low, high = (middle, high) if enough else (low, middle)
    return np.exp(low * shifted)


def _effective(weights: np.ndarray) -> float:
    return float(weights.sum() ** 2 / np.sum(weights**2))


def _averaged(arrived: list[Arrived], log_share: float) -> Tempered:
    """The mean over populations, which is unbiased, with the error that their differences tell."""
    logs = np.array([float(one.log_ratio) for one in arrived]) + log_share
    top = logs.max()
    ratios = np.exp(logs - top)
    shares = ratios / ratios.sum()
    return Tempered(
        log_evidence=float(top + np.log(ratios.mean())),
        error=float(ratios.std(ddof=1) / ratios.mean() / math.sqrt(len(ratios))),
        spread=float(logs.std(ddof=1)),
        particles=Particles(
            np.concatenate([one.particles for one in arrived]),
            np.concatenate([s * one.weights for s, one in zip(shares, arrived, strict=True)]),
        ),
    )


def _where_inside(log_density: Any, counted: Any) -> np.ndarray:
    """Draws outside count as zero; so does a density that is NaN, of which the path's status tells."""
    return np.where(counted & ~np.isnan(log_density), log_density, -np.inf)


def _usable(vectors: np.ndarray) -> np.ndarray:
    return vectors[np.all(np.isfinite(vectors), axis=1)]


def _two_words(word: np.unsignedinteger) -> np.ndarray:
    return np.array([int(word) >> 32, int(word) & 0xFFFFFFFF], np.uint32)
