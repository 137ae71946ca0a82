"""The evidences of all paths: quickly where a path may carry weight, thoroughly where it does."""

import logging
import math
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from pathmix.discovery.contenders import Contender
from pathmix.engine.requests import Asking
from pathmix.evidence.search import Search, begin, few_particles, of_importance
from pathmix.evidence.settle import SHORT, quick, settle
from pathmix.posterior.evidence import HOPELESS, NO_DENSITY, UNKNOWN, Efforts, Evidence
from pathmix.posterior.weights import path_weights
from pathmix.training.fit import PathFit
from pathmix.training.importance import importance
from pathmix.training.phases import Workshop

_log = logging.getLogger("pathmix")

NEGLIGIBLE = 2e-3  # a weight; beneath it nothing is settled
_SMALL = 1e-2  # one up to which a posterior that looks like one blob needs no second opinion
_MOST_HOPES = 16
_CHUNK = 32  # paths that are looked at before it is asked whether more can matter
_IDLE_CHUNKS = 2  # that did not matter, after which no other can
_MOST_MISSED = 64  # paths that are looked at although no draw of their guides is inside
_WEIGHT_ERROR = 0.003  # that a path may bring to a weight
_LEAST_ERROR = 0.01  # that an evidence is asked for
QUICK_VOLUME = 2.5e5  # bytes that a density writes: with some 16,000 of them, half a second
_MOST_WORK = 6e11  # bytes that are written for paths that seem not to matter
_KEPT_BYTES = 2**25  # of particles of all paths that are only looked at
_NEVER_DRAWN = 1e-6  # weight of paths together
_MOST_PARTICLES = 500
_WORK = 1.5e11  # bytes that densities for one path may write: half a minute, where they are large

Fitting = Contender[PathFit]


def weigh(
    workshop: Workshop, fittings: Sequence[Fitting], contenders: Sequence[Fitting], efforts: Efforts | None
) -> None:
    """Give every path an evidence; without efforts, the one that the draws for the ELBO tell."""
    for one in fittings:
        if not one.work.was_set_aside:
            one.work.evidence = _first(one.work)
    if efforts is not None:
        _Weighing(workshop, fittings, Counter(id(one.work) for one in contenders), efforts).go()
    for fit in (one.work for one in fittings):
        known = fit.evidence.method == "exact" or fit.evidence.particles is not None
        if _is_missed(fit) and not known:  # there is nothing to draw from
            fit.evidence = UNKNOWN


def look_at(workshop: Workshop, fittings: Sequence[Fitting], efforts: Efforts) -> None:
    """Give new paths a first evidence, from a quick search where densities are small."""
    workshop.to_the_end(fittings, lambda one: one.work.weigh())
    for one in fittings:
        one.work.evidence = _first(one.work)
    small = [one for one in fittings if one.work.target.graphs.density.volume < QUICK_VOLUME]
    weighing = _Weighing(workshop, small, Counter(), efforts)
    weighing.look_at(weighing.open)


class _Weighing:
    """Paths whose guides fit badly (they were set aside early, maybe) may have more than their guides show.

    They are looked at in the order of what they show, until whole chunks of them do not matter; those that
    may carry weight are settled.
    """

    def __init__(
        self, workshop: Workshop, fittings: Sequence[Fitting], copies: Counter[int], efforts: Efforts
    ) -> None:
        self.workshop, self.fittings, self.copies, self.efforts = workshop, fittings, copies, efforts
        self.open = [one for one in fittings if one.work.searchable]
        self.searches: dict[Fitting, Search] = {}
        self.plain: set[Fitting] = set()
        self.work = 0  # bytes that densities have written
        self._hopeless = -math.inf  # an evidence, beneath which it does not matter

    def go(self) -> None:
        self._search()
        self._forget()

    def _search(self) -> None:
        stopping = self.workshop.executor.stopping  # by Ctrl-C: what is not settled stays in doubt
        missed = [one for one in self.open if _is_missed(one.work)]
        self.look_at(missed[:_MOST_MISSED])
        waiting = [one for one in self.open if not _is_missed(one.work)]
        waiting.sort(key=lambda one: -one.work.evidence.log_evidence)
        idle = 0
        while waiting and not stopping.is_set():
            chunk, waiting = waiting[:_CHUNK], waiting[_CHUNK:]
            self.look_at(chunk)
            weights = self._weights()
            idle = idle + 1 if sum(weights[one] for one in chunk) < NEGLIGIBLE else 0
            if idle >= _IDLE_CHUNKS:  # no other can matter, unless it is in doubt
                waiting = self._doubted(waiting) if self.work < _MOST_WORK else []
        done: set[Fitting] = set()
        while not stopping.is_set():
            weights = self._weights()
            rivals = [one for one in self._rivals(weights) if one not in done]
            if not rivals:
                return
            done.update(rivals)
            self.workshop.to_the_end(
                rivals,
                lambda one, weights=weights: _kept(one, self._settled(one, _wanted_error(weights[one]))),
            )

    @property
    def _searched(self) -> list[Fitting]:
        """In an order that does not depend on threads."""
        return [one for one in self.open if one in self.searches]

    def _forget(self) -> None:
        """Particles of the lightest paths that were only looked at, where they take much memory."""
        weights, held, total = self._weights(), [], 0.0
        for one in sorted(self._searched, key=lambda one: weights[one]):
            particles = one.work.evidence.particles
            if particles is not None and len(particles.vectors) <= _MOST_PARTICLES:
                held.append((one, particles.vectors.nbytes))
        size = sum(own for _, own in held)
        for one, own in held:
            total += weights[one]
            if size <= _KEPT_BYTES or total > _NEVER_DRAWN:
                return
            if not _is_missed(one.work):  # of which guides have no draws
                one.work.evidence = one.work.evidence._replace(particles=None)
                size -= own

    def look_at(self, some: Sequence[Fitting]) -> None:
        before = [one.work.evaluations for one in some]
        best = max((one.work.evidence.log_evidence for one in self.fittings), default=-math.inf)
        self._hopeless = best - HOPELESS
        self.workshop.to_the_end(some, lambda one: _kept(one, self._looked(one)))
        for one, done in zip(some, before, strict=True):
            self.work += (one.work.evaluations - done) * one.work.target.graphs.density.volume

    def _looked(self, one: Fitting) -> Asking[None]:
        fit = one.work
        search = yield from begin(fit, one.draws, fit.elbo_seed.child(1_000), _affordable(fit, self.efforts))
        self.searches[one] = search
        opinion = yield from quick(search, self._hopeless)
        if not np.isfinite(opinion.found.log_evidence):
            return
        # Only this one knows of exchangeable members.
        if opinion.found.good or not opinion.found.effective_draws <= fit.evidence.effective_draws:
            fit.evidence = of_importance(opinion.found)
            if opinion.found.log_evidence - fit.elbo > SHORT:
                count = few_particles(fit.target.dim, _MOST_PARTICLES)
                found = yield from search.particles(opinion.drawn, search.seed.child(19), count)
                fit.evidence = fit.evidence._replace(particles=found)
            if search.is_plain(opinion):
                self.plain.add(one)

    def _settled(self, one: Fitting, error: float) -> Asking[None]:
        fit = one.work
        found = yield from settle(self.searches[one], _affordable(fit, self.efforts), error)
        if found.particles is None and found.log_evidence - fit.elbo > SHORT:
            found = found._replace(particles=fit.evidence.particles)
        if found.settled or not found.log_evidence < fit.evidence.log_evidence:
            fit.evidence = found
        else:  # estimates are unbiased: what was seen before cannot be too much by far
            fit.evidence = fit.evidence._replace(doubts=found.doubts, particles=found.particles)

    def _weights(self) -> dict[Fitting, float]:
        """Of each path with its twins."""
        logs = [one.work.evidence.log_evidence + math.log(self.copies[id(one.work)]) for one in self.fittings]
        return dict(zip(self.fittings, path_weights(logs).tolist(), strict=True))

    def _doubted(self, some: Iterable[Fitting]) -> list[Fitting]:
        """Paths that may have more than is known, and matter."""
        best = max(one.work.evidence.log_evidence for one in self.fittings)
        known = ((one, one.work.evidence) for one in some)
        return [one for one, evidence in known if not evidence.settled and not evidence.is_hopeless(best)]

    def _rivals(self, weights: dict[Fitting, float]) -> list[Fitting]:
        """Paths that carry weight, or may."""
        hopes = self._doubted(self._searched)
        hopes.sort(key=lambda one: -one.work.evidence.log_evidence)
        chosen = set(hopes[:_MOST_HOPES])
        for one in self.searches:
            least = _SMALL if one in self.plain else NEGLIGIBLE
            # Of a path that its guide misses, there are no draws yet.
            if weights[one] >= least or (weights[one] > 0 and _is_missed(one.work)):
                chosen.add(one)
        return [one for one in self.open if one in chosen]


def _is_missed(fit: PathFit) -> bool:
    """Whether no draw of the guide has any density."""
    return not np.isfinite(fit.elbo)


def _kept(one: Fitting, task: Asking[None]) -> Asking[None]:
    """A task whose failure leaves what is known, with a doubt."""
    try:
        yield from task
    except Exception as error:
        _log.warning(
            "The search for the evidence of %s failed: %s: %s", one.label, type(error).__name__, error
        )
        one.work.evidence = one.work.evidence.doubted("failed")


def _first(fit: PathFit) -> Evidence:
    """What the draws for the ELBO tell."""
    if fit.estimate is None or fit.failure is not None:
        return UNKNOWN
    if fit.target.dim == 0 and np.isneginf(fit.estimate.elbo) and fit.estimate.broken_density == 0:
        return NO_DENSITY
    if not np.isfinite(fit.estimate.elbo):
        return UNKNOWN
    if fit.target.dim == 0:
        return Evidence(fit.estimate.elbo, 0.0, "exact")
    assert fit.log_ratios is not None
    found = of_importance(importance(fit.log_ratios))
    return found if found.settled else found._replace(doubts=("unsought",))


def _wanted_error(weight: float) -> float:
    return max(_LEAST_ERROR, _WEIGHT_ERROR / max(weight * (1 - weight), 1e-9)) if weight < 1 else _LEAST_ERROR


def _affordable(fit: PathFit, efforts: Efforts) -> Efforts:
    """The efforts, less where densities are large."""
    most = int(_WORK // max(fit.target.graphs.density.volume, 1))
    return Efforts(min(efforts.draws, most), min(efforts.smc, most), efforts.symmetry)
