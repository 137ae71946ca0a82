"""The evidence of one path, settled: two opinions that agree, or a word on why there are none."""

import math

import numpy as np

from pathmix.engine.requests import Asking
from pathmix.evidence.evidence import Doubt, Efforts, Evidence
from pathmix.evidence.importance import Importance, importance
from pathmix.evidence.mixture import Mixture
from pathmix.evidence.search import BLOCK, Opinion, Search, Tempered
from pathmix.evidence.tempered import evaluations

_AGREED = 0.05  # nats that do not matter, beside four errors
_SAFE_KHAT = 0.5  # beyond it, and up to 0.7, importance sampling needs a witness
_SHORT = 0.05  # nats between the evidence and the ELBO of a guide that fits
_MOST_TEMPERATURES = 60
_SPREAD = 1.0  # nats between populations of particles, beyond which their mean means little


def quick(search: Search) -> Asking[Opinion | None]:
    """What importance sampling from the guide on finds, without further ado."""
    first = yield from search.from_guide()
    return (yield from search.fitted(first, search.seed.child(10), parts=(1, 1)))


def settle(search: Search, efforts: Efforts, error: float) -> Asking[Evidence]:
    """The evidence, to an error of about so much."""
    from_guide = yield from search.from_guide()
    opinions = [(yield from search.fitted(from_guide, search.seed.child(11)))]
    around = yield from search.from_prior()
    opinions.append((yield from search.fitted(around, search.seed.child(12))))
    found = [opinion for opinion in opinions if opinion is not None]
    best = _best(found)
    witness = None
    if len(found) < 2 or best is None or not _agree(found) or not _is_plain(search, best):
        temperatures = min(_MOST_TEMPERATURES, efforts.smc // evaluations(1, 1) // 2048)
        witness = yield from search.tempered(temperatures) if temperatures > 0 else _nothing()
        if witness is not None:
            mixture = Mixture.of(
                witness.particles.vectors,
                np.maximum(witness.particles.weights, 1e-300),
                8,
                search.seed.child(13).generator(),
            )
            from_particles = yield from search.drawn(mixture, search.seed.child(14))
            third = yield from search.fitted(from_particles, search.seed.child(15), parts=(8, 16))
            found += [Opinion(mixture, importance(from_particles.log_ratios)), *([third] if third else [])]
            best = _best(found)
    if best is None:
        return _by_particles(witness, found)
    blocks = math.ceil((best.found.error / error) ** 2 * best.found.draws / BLOCK)
    affordable = (search.until - search.fit.evaluations) // BLOCK
    drawn = yield from search.more(best, search.seed.child(16), max(1, min(blocks, affordable)))
    evidence = _judged(importance(drawn.log_ratios), witness, found)
    # A guide that leaves nats, or knows one of many orders, misses part of the posterior; the draws do not.
    short = evidence.log_evidence - search.fit.elbo > _SHORT or search.groups
    if evidence.particles is None and evidence.settled and short:
        return evidence._replace(particles=(yield from search.particles(drawn, search.seed.child(17))))
    return evidence


def _nothing() -> Asking[None]:
    yield from ()
    return None


def _best(opinions: list[Opinion]) -> Opinion | None:
    """The one with the smallest error among those that nobody contradicts.

    Estimates are unbiased, so one is far above the evidence in one case of many; far below it whenever the
    proposal has missed something.
    """
    good = [opinion for opinion in opinions if opinion.found.good]
    credible = [one for one in good if all(not _above(other.found, one.found) for other in good)]
    return min(credible, key=lambda one: one.found.error, default=None)


def _above(one: Importance, other: Importance) -> bool:
    return one.log_evidence - other.log_evidence > _AGREED + 4 * math.hypot(one.error, other.error)


def _agree(opinions: list[Opinion]) -> bool:
    good = [one.found for one in opinions if one.found.good]
    return len(good) == len(opinions) and not any(_above(a, b) for a in good for b in good)


def _is_plain(search: Search, opinion: Opinion) -> bool:
    """Whether the posterior looks like one blob: a single t leaves as many draws as it would of a normal."""
    found, dim = opinion.found, search.fit.target.dim
    plain = found.effective_draws > 0.5 * found.draws / (1 + 0.035 * dim)
    return len(opinion.proposal.parts) == 1 and plain and found.khat < _SAFE_KHAT


def _judged(found: Importance, witness: Tempered | None, opinions: list[Opinion]) -> Evidence:
    """Importance sampling, in the light of what else was found."""
    doubts: list[Doubt] = []
    if not found.good:
        doubts.append("khat")
    reliable = witness is not None and witness.spread < _SPREAD
    if witness is not None:
        gap = witness.log_evidence - found.log_evidence
        wide = _AGREED + 4 * math.hypot(found.error, witness.error)
        if gap > wide:
            if reliable:
                return Evidence(
                    witness.log_evidence,
                    max(witness.error, gap / 2),
                    "smc",
                    found.khat,
                    found.effective_draws,
                    ("disagreement",),
                    witness.particles,
                )
            doubts.append("disagreement")
        elif gap < -wide and found.khat > _SAFE_KHAT:
            doubts.append("disagreement")
    elif len(opinions) < 2 or not _agree(opinions) or found.khat > _SAFE_KHAT:
        doubts.append("alone")
    return Evidence(
        found.log_evidence, found.error, "importance", found.khat, found.effective_draws, tuple(doubts)
    )


def _by_particles(witness: Tempered | None, opinions: list[Opinion]) -> Evidence:
    """Where no importance sampling works."""
    top = max((one.found for one in opinions), key=lambda found: found.effective_draws, default=None)
    if witness is None:
        if top is None:
            return Evidence(-math.inf, math.inf, "importance", math.inf, 0.0, ("khat", "alone"))
        return Evidence(
            top.log_evidence, top.error, "importance", top.khat, top.effective_draws, ("khat", "alone")
        )
    doubts: tuple[Doubt, ...] = () if witness.spread < _SPREAD else ("spread",)
    khat = math.nan if top is None else top.khat
    # Eight populations tell their own error roughly: by a quarter more it holds as often as it should.
    return Evidence(
        witness.log_evidence, 1.25 * witness.error, "smc", khat, math.nan, doubts, witness.particles
    )
