"""Proposals for the importance sampling of one path: the guide, and mixtures fitted to weighted draws.

Where members of a path are exchangeable, proposals live where these are in order, and count for all orders.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import root_scalar

from pathmix.engine.requests import Asking
from pathmix.evidence.leap import DRAWS_PER_TERM, leap, terms
from pathmix.evidence.mixture import Mixture
from pathmix.evidence.moves import moves
from pathmix.evidence.orders import Group, order_of, permuted, usual_order
from pathmix.evidence.proposal import Proposal
from pathmix.evidence.symmetry import confirmed, exchangeable, ordered_by, vectors_of
from pathmix.posterior.evidence import Doubt, Efforts, Evidence, Particles
from pathmix.posterior.weights import path_weights
from pathmix.program.seeds import Seed
from pathmix.program.values import SiteRows
from pathmix.target.on_host import has_values
from pathmix.training.fit import PathFit
from pathmix.training.importance import SAFE_KHAT, Importance, importance

BLOCK = 2_000  # draws that are made at once
_DEEP = (16, 16, 32, 32, 64)  # parts of a proposal, round by round
_MOST_ROUNDS = 24
_DEEP_BLOCKS = 5
_WIDE_BLOCKS = 10
_EXACT = 0.9  # of all draws, for a guide
_SEEN = 100  # effective draws, with which a search has come to a place
_ENOUGH = 0.5  # of the effective draws that a normal posterior would leave
_ENOUGH_DEEP = 0.1  # of all draws
_CHECKED = 256  # draws at which members are swapped once more
_CARRIED = 128  # draws that are carried elsewhere
_STRANGE = (
    4.0  # nats between the weight of a draw and the mean weight, for one that the proposal would not make
)
_MISSED_SHARE = 1e-3  # of the posterior, that is worth another search
_LOWEST_POWER = math.log(1e-12)  # of weights
_PARTICLES = 8_192  # that stand for a path's posterior
_FEWEST_PARTICLES, _NUMBERS = 50, 8_000  # of a path that is only looked at: there may be thousands


class Weighted(NamedTuple):
    """Draws of a proposal, with log gamma - log q."""

    vectors: np.ndarray
    log_ratios: np.ndarray
    log_densities: np.ndarray  # log gamma on the vectors, for all orders; NaN where it is not known

    @property
    def shares(self) -> np.ndarray | None:
        """Weights that sum to one; None where no draw has any."""
        return path_weights(self.log_ratios) if np.any(np.isfinite(self.log_ratios)) else None


class Opinion(NamedTuple):
    """A proposal, and what importance sampling with it found."""

    proposal: Mixture | None  # the guide itself
    found: Importance
    drawn: Weighted


@dataclass(frozen=True, eq=False)
class Search:
    """One path, and where its evidence is looked for."""

    fit: PathFit
    groups: tuple[Group, ...]  # of exchangeable members, of which the guide has chosen an order
    seed: Seed
    until: int  # evaluations of the path, beyond which no proposal is fitted
    usual: tuple[np.ndarray, ...] = ()  # the order that the guide has chosen, of each group

    @property
    def log_orders(self) -> float:
        return sum(group.log_order for group in self.groups)

    def from_guide(self) -> Asking[Opinion]:
        """What the guide's own draws tell; they are given with members in order, whatever it was."""
        drawn, counted, ordered = yield from self._drawn(None, self.seed.child(0))
        found = importance(np.where(counted, drawn.log_ratios, -np.inf))
        return Opinion(None, found, drawn._replace(vectors=ordered))

    def from_prior(self, seed: Seed) -> Asking[Opinion]:
        """Draws around the prior, many where they are cheap: narrow modes are met with by chance only."""
        wide = Mixture.alone(self.around_prior)
        blocks = max(1, min(_WIDE_BLOCKS, (self.until - self.fit.evaluations) // (4 * BLOCK)))
        drawn = yield from self.more(wide, seed, blocks)
        return Opinion(wide, importance(drawn.log_ratios), drawn)

    def _drawn(self, proposal: Mixture | None, seed: Seed) -> Asking[tuple[Weighted, np.ndarray, np.ndarray]]:
        """Draws of a proposal, which count for all orders; which are in its order; and all put in order."""
        if proposal is None:
            vectors = yield from self.fit.calls.sampled(self.fit.params, seed, BLOCK)
        else:
            vectors = proposal.draw(seed.generator(), BLOCK)
        seen = yield from self.fit.densities(vectors)
        log_q = seen.log_q if proposal is None else proposal.log_prob(vectors)
        density = where_inside(seen.log_joint + seen.log_det, seen.inside) + self.log_orders
        ordered, had = yield from self.ordered(vectors)
        own = self.usual if proposal is None else [np.arange(len(group.members)) for group in self.groups]
        counted = np.ones(len(vectors), bool)
        for order, wanted in zip(had, own, strict=True):
            counted &= np.all(order == wanted, axis=1)
        # No more precise than the density.
        ratios = (density - log_q).astype(seen.log_joint.dtype)
        return Weighted(vectors, ratios, density), counted, ordered

    def fitted(
        self, first: Weighted, seed: Seed, parts: Sequence[int], hopeless: float = -math.inf
    ) -> Asking[Opinion | None]:
        """A proposal fitted to its own weighted draws, again and again, with so many parts each time.

        It goes on for as long as it rises: the posterior may be far away, and much narrower. Beneath what is
        `hopeless` it ends once it has come to a place, by what it found there or because it rises no more.
        """
        best: Opinion | None = None
        drawn, level = first, -math.inf
        for number in range(_MOST_ROUNDS):
            count = parts[min(number, len(parts) - 1)]
            found = yield from self._refitted(drawn, count, seed.child(number), 1)
            rises = found is not None and found.found.log_evidence > level + 1.0
            if found is None or (number >= len(parts) and not rises):
                break
            drawn, level = found.drawn, found.found.log_evidence
            if best is None or found.found.effective_draws > best.found.effective_draws:
                best = found
            there = found.found.good or (not rises and found.found.effective_draws >= _SEEN)
            lost = level < hopeless and there
            if lost or self.is_plain(found):
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
        dim = self.fit.target.dim
        # As many as parts need: one with fewer draws is dropped, and a mode with it.
        wanted = min(max(100.0, 5.0 * dim, 20.0 * count, 4.0 * dim * min(count, 4)), usable.sum() / 2)
        weights, power = tempered_weights(drawn.log_ratios[usable], wanted)
        proposal = Mixture.of(drawn.vectors[usable], weights, count, seed.child(0).generator())
        if count == 1 and power < 1 and (there := self._leap(drawn, usable)) is not None:
            proposal = proposal.joined(there)
        proposal = proposal.guarded(self.around_prior)
        fresh = yield from self.more(proposal, seed.child(1), blocks)
        return Opinion(proposal, importance(fresh.log_ratios), fresh)

    def _leap(self, drawn: Weighted, usable: np.ndarray) -> Proposal | None:
        """Where the posterior is, if it is normal."""
        wanted = min(DRAWS_PER_TERM * terms(self.fit.target.dim), usable.sum() / 2)
        weights, _ = tempered_weights(drawn.log_ratios[usable], wanted)
        found = leap(drawn.vectors[usable], drawn.log_densities[usable], weights)
        target = self.fit.target
        if found is None or not has_values(target.coordinates, target.arguments.map, found.loc):
            return None
        return found

    def is_plain(self, opinion: Opinion) -> bool:
        """Whether the posterior looks like one blob: the guide, or one t with the guard, suits it."""
        found = opinion.found
        if opinion.proposal is None:  # its tails are light: it must be nearly exact
            return found.good and found.khat < SAFE_KHAT and found.effective_draws > _EXACT * found.draws
        normal = found.draws / (1 + 0.035 * self.fit.target.dim)
        return len(opinion.proposal.shares) == 2 and found.good and found.effective_draws > _ENOUGH * normal

    def more(self, proposal: Mixture | None, seed: Seed, blocks: int) -> Asking[Weighted]:
        """Blocks of draws of a proposal; those that are out of order count as zero."""
        found = []
        for number in range(blocks):
            drawn, counted, _ = yield from self._drawn(proposal, seed.child(number))
            found.append(drawn._replace(log_ratios=np.where(counted, drawn.log_ratios, -np.inf)))
        return Weighted(*map(np.concatenate, zip(*found, strict=True)))

    def particles(self, drawn: Weighted, seed: Seed, count: int = _PARTICLES) -> Asking[Particles]:
        """Some of the draws, as often as their weights say, with exchangeable members in any order."""
        generator = seed.generator()
        rows = generator.choice(len(drawn.vectors), size=count, p=drawn.shares)
        vectors = drawn.vectors[rows]
        if self.groups:
            values = yield from self.fit.constrained(vectors)
            for group in self.groups:
                lots = generator.random((count, len(group.members)))
                values = permuted(values, group, np.argsort(lots, axis=1))
            vectors = vectors_of(self.fit, values)
        return Particles(vectors, np.full(count, 1 / count))

    def still_exchangeable(self, drawn: Weighted, seed: Seed) -> Asking[bool]:
        """Whether swaps go unnoticed where the posterior is, too."""
        if not self.groups or (weights := drawn.shares) is None:
            return True
        rows = seed.generator().choice(len(weights), size=_CHECKED, p=weights)
        values = yield from self.fit.constrained(drawn.vectors[rows])
        return len((yield from confirmed(self.fit, self.groups, values, _CHECKED))) == len(self.groups)

    def elsewhere(self, opinion: Opinion, seed: Seed) -> Asking[Weighted | None]:
        """Draws carried to other places where the posterior may be, if the opinion has missed one."""
        known = moves(self.fit.target, self.groups)
        if not known or (weights := opinion.drawn.shares) is None or not opinion.found.good:
            return None
        rows = seed.generator().choice(len(weights), size=_CARRIED, p=weights)
        values = yield from self.fit.constrained(opinion.drawn.vectors[rows])
        moved = [move(values) for move in known]
        there = vectors_of(self.fit, [np.concatenate(column) for column in zip(*moved, strict=True)])
        there, _ = yield from self.ordered(there)
        possible = np.asarray(np.isfinite(there).all(axis=1))  # others are off the support
        there = np.where(possible[:, None], there, 0.0)
        before = yield from self.fit.densities(opinion.drawn.vectors[rows])
        seen = yield from self.fit.densities(there)
        proposal = opinion.proposal
        log_q = seen.log_q if proposal is None else proposal.log_prob(there)
        density = where_inside(seen.log_joint + seen.log_det, seen.inside & possible)
        # Swaps keep volumes, so draws of the posterior have its density on the way back.
        gain = density - np.tile(before.log_joint + before.log_det, len(known))
        missed = density + self.log_orders - log_q > opinion.found.log_evidence + _STRANGE
        shares = np.where(missed, gain, -np.inf)
        if np.max(np.mean(np.exp(shares.reshape(len(known), -1)), axis=1)) < _MISSED_SHARE:
            return None
        shares, density = shares + opinion.found.log_evidence, density + self.log_orders
        return Weighted(there[missed], shares[missed], density[missed])

    def without_groups(self, efforts: Efforts) -> "Search":
        """A search in which members are told apart."""
        return Search(self.fit, (), self.seed.child(4), self.fit.evaluations + efforts.draws)

    @cached_property
    def around_prior(self) -> Proposal:
        vectors, dim = self.fit.finite_vectors, self.fit.target.dim
        return Proposal.of(vectors) if len(vectors) else Proposal(np.zeros(dim), np.eye(dim))

    def ordered(self, vectors: np.ndarray) -> Asking[tuple[np.ndarray, list[np.ndarray]]]:
        """The vectors with members in order, and the order that each group had."""
        if not self.groups:
            return vectors, []
        values, had = (yield from self.fit.constrained(vectors)), []
        same = np.ones(len(vectors), bool)
        for group in self.groups:
            had.append(order_of(group, values))
            values = permuted(values, group, had[-1])
            same &= np.all(had[-1] == np.arange(len(group.members)), axis=1)
        return np.where(same[:, None], vectors, vectors_of(self.fit, values)), had


def begin(fit: PathFit, draws: SiteRows, seed: Seed, efforts: Efforts) -> Asking[Search]:
    """A search, which knows the exchangeable members of the path; `draws` are of its prior."""
    groups: tuple[Group, ...] = ()
    usual: tuple[np.ndarray, ...] = ()
    until = fit.evaluations + efforts.draws
    if efforts.symmetry and fit.target.dim > 1:
        groups = yield from exchangeable(fit, draws)
    if groups:
        vectors = yield from fit.calls.sampled(fit.params, seed.child(3), BLOCK)
        values = yield from fit.constrained(vectors)
        groups = yield from confirmed(fit, ordered_by(groups, values), values)
        usual = tuple(usual_order(group, values) for group in groups)
    return Search(fit, groups, seed, until, usual)


def few_particles(dim: int, most: int) -> int:
    """How many stand for a path that is only looked at."""
    return max(_FEWEST_PARTICLES, min(most, _NUMBERS // dim))


def of_importance(found: Importance) -> Evidence:
    """What importance sampling alone tells."""
    doubts: tuple[Doubt, ...] = () if found.good else ("khat",)
    return Evidence(found.log_evidence, found.error, "importance", found.khat, found.effective_draws, doubts)


def together(parts: Sequence[Weighted]) -> Weighted:
    """Draws of several proposals. Each part counts as it would alone: as if it told the whole evidence."""
    sizes = [len(part.vectors) for part in parts]
    return Weighted(
        np.concatenate([part.vectors for part in parts]),
        np.concatenate([part.log_ratios - math.log(size) for part, size in zip(parts, sizes, strict=True)]),
        np.concatenate([part.log_densities for part in parts]),
    )


def tempered_weights(log_ratios: np.ndarray, wanted: float) -> tuple[np.ndarray, float]:
    """Weights to the highest power, up to one, that leaves about so many effective draws; and the power."""
    shifted = log_ratios - np.max(log_ratios)

    def spare(log_power: float) -> float:
        return math.log(_effective(np.exp(math.exp(log_power) * shifted)) / wanted)

    if spare(0.0) >= 0:
        return np.exp(shifted), 1.0
    if spare(_LOWEST_POWER) <= 0:
        return np.exp(math.exp(_LOWEST_POWER) * shifted), math.exp(_LOWEST_POWER)
    power = math.exp(root_scalar(spare, bracket=(_LOWEST_POWER, 0.0), xtol=0.01).root)
    return np.exp(power * shifted), power


def _effective(weights: np.ndarray) -> float:
    return float(weights.sum() ** 2 / np.sum(weights**2))


def where_inside(log_density: Any, counted: Any) -> np.ndarray:
    """Draws outside count as zero; so does a density that is NaN, of which the path's status tells."""
    return np.where(counted & ~np.isnan(log_density), log_density, -np.inf)
