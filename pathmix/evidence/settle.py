"""The evidence of one path, settled: opinions that agree, or a word on why they do not.

Importance sampling is unbiased: one estimate is far above the evidence in one case of many, but far below it
whenever the proposal has missed something. So of two that disagree the larger one is right, if any.
"""

import math
from collections.abc import Sequence

import numpy as np

from pathmix.engine.requests import Asking
from pathmix.evidence.populations import Tempered, as_draws, tempered
from pathmix.evidence.search import BLOCK, Opinion, Search, Weighted, together
from pathmix.posterior.evidence import FEW_DRAWS, Doubt, Efforts, Evidence
from pathmix.training.importance import Importance, hidden_error, importance

_AGREED = 0.05  # nats that do not matter, beside four errors
_MISSING = 0.5  # nats, by which a search that starts at the prior may fall short and still confirm
_HEAVY = 0.3  # k-hat
_COVERING = 1_000  # effective draws around the prior
_ONE_PLACE = 0.5  # standard deviations
_MOST_SHARPENED = 3  # opinions
_NEAR = 1.5  # times the wanted error
_FEWEST_BLOCKS = 5  # of draws of a proposal of many parts
SHORT = 0.05  # nats between the evidence and the ELBO of a guide that fits
_SURE = 0.1  # nats, the error up to which particles are believed alone
_SPREAD = 1.0  # nats between populations of particles, beyond which their mean means little
_FROM_GUIDE, _FROM_PRIOR = (1, 1, 1, 4, 4, 4), (4, 4, 4, 1, 1, 4, 8, 8)  # parts of proposals, round by round


def quick(search: Search, hopeless: float) -> Asking[Opinion]:
    """What importance sampling finds from the guide on; from the prior on, if the guide misses the path.

    An evidence beneath `hopeless` need not be precise.
    """
    guide = yield from search.from_guide()
    first = guide if np.isfinite(guide.found.error) else (yield from search.from_prior(search.seed.child(1)))
    found = yield from search.fitted(first.drawn, search.seed.child(10), (1,) * 8, hopeless)
    return _better(search, first, found)


def settle(search: Search, efforts: Efforts, error: float) -> Asking[Evidence]:
    """The evidence, to an error of about so much."""
    guide = yield from search.from_guide()
    fitted = yield from search.fitted(guide.drawn, search.seed.child(11), _FROM_GUIDE)
    inner = _better(search, guide, fitted)
    around = yield from search.from_prior(search.seed.child(1))
    outer = yield from search.fitted(around.drawn, search.seed.child(12), _FROM_PRIOR)
    opinions = [inner] if outer is None else [inner, outer]
    plain = [opinion for opinion in opinions if search.is_plain(opinion)]
    witness, covered = None, False
    missed = any(_above(around.found, one.found, errors=2) for one in plain)
    apart = outer is not None and not (_same(inner, outer) and _at_one_place(inner, outer))
    apart = apart or (search.fit.starts_apart and not search.groups)  # which may be orders of members
    surest = max(opinions, key=lambda one: (one.found.good, one.found.effective_draws))
    mirrored = yield from search.elsewhere(surest, search.seed.child(18))
    apart = apart or mirrored is not None
    agreed = outer is not None and bool(plain) and all(map(_is_good, opinions)) and not missed and not apart
    if agreed:
        candidates = plain
    else:
        starts = [opinion.drawn for opinion in (*opinions, around)]
        starts += [mirrored] if mirrored is not None else []
        deep = yield from search.deepened(together(starts), search.seed.child(13))
        opinions += [deep] if deep is not None else []
        covered = deep is not None and _covers(around, deep)
        apart = apart and not covered
        if apart or not (_is_good(deep) and (covered or _confirms(outer, deep))):
            # Where two searches found different modes there may be more, and particles may find them; so they
            # may where nothing that started at the prior came to the same place.
            witness = yield from tempered(search, efforts.smc)
        vague = witness is None or witness.spread > _SPREAD
        if vague and not _is_good(deep) and not search.groups:
            nearer = yield from tempered(search, efforts.smc, guide.drawn)
            witness = min((one for one in (witness, nearer) if one), key=lambda one: one.spread, default=None)
        if witness is not None:
            starts.append((yield from as_draws(search, witness)))
            deep = yield from search.deepened(together(starts), search.seed.child(14))
            opinions += [deep] if deep is not None else []
        candidates = [one for one in opinions if one.found.good] or ([] if deep is None else [deep])
    if not candidates:
        return _by_particles(witness, opinions)
    candidates = sorted(candidates, key=lambda one: _rank(one.found, opinions), reverse=True)
    best, drawn, final = yield from _sharpened(search, candidates, error)
    if not (yield from search.still_exchangeable(drawn, search.seed.child(17))):
        return (yield from settle(search.without_groups(efforts), efforts, error))
    if not search.is_plain(best):
        final = _less_sure(final, best.found, opinions)
    # Searches that found different modes confirm nothing: what one of them missed, both may have missed.
    confirmed = agreed or ((covered or _confirms(outer, best)) and not apart)
    evidence = _judged(final, witness, [*opinions, around], confirmed=confirmed)
    # A guide that leaves nats, or knows one of many orders, misses part of the posterior; the draws do not,
    # in doubt or not, if they are more than a few. One without a draw inside says nothing at all.
    short = evidence.log_evidence - search.fit.elbo > SHORT or search.groups
    told = short and final.effective_draws >= FEW_DRAWS
    if evidence.particles is None and (told or not np.isfinite(search.fit.elbo)):
        return evidence._replace(particles=(yield from search.particles(drawn, search.seed.child(16))))
    return evidence


def _sharpened(
    search: Search, candidates: Sequence[Opinion], error: float
) -> Asking[tuple[Opinion, Weighted, Importance]]:
    """The first opinion that more draws bring near the error, or else the one that they bring nearest."""
    found: list[tuple[Opinion, Weighted, Importance]] = []
    for number, one in enumerate(candidates[:_MOST_SHARPENED]):
        blocks = math.ceil((one.found.error / error) ** 2 * one.found.draws / BLOCK)
        blocks = blocks if search.is_plain(one) else max(blocks, _FEWEST_BLOCKS)
        affordable = (search.until - search.fit.evaluations) // BLOCK
        if found and affordable < blocks:
            break
        drawn = yield from search.more(
            one.proposal, search.seed.child(15, number), max(1, min(blocks, affordable))
        )
        found.append((one, drawn, importance(drawn.log_ratios)))
        if found[-1][2].good and found[-1][2].error < _NEAR * error:
            return found[-1]
    return max(found, key=lambda one: (one[2].good, -one[2].error))


def _at_one_place(one: Opinion, other: Opinion) -> bool:
    """Whether two opinions are of one blob: modes that mirror each other have the same evidence, too."""
    means, spread = [], np.zeros(())
    for drawn in (one.drawn, other.drawn):
        if (weights := drawn.shares) is None:
            return False
        means.append(weights @ drawn.vectors)
        spread = spread + weights @ (drawn.vectors - means[-1]) ** 2 / 2
    return bool(np.max(np.abs(means[0] - means[1]) / np.sqrt(spread + 1e-300)) < _ONE_PLACE)


def _better(search: Search, first: Opinion, fitted: Opinion | None) -> Opinion:
    """What was fitted, which has heavy tails, unless it is bad, or there was nothing left to fit."""
    if fitted is None or search.is_plain(first):
        return first
    more = first.found.effective_draws > fitted.found.effective_draws
    return first if more and not fitted.found.good else fitted


def _less_sure(found: Importance, before: Importance, opinions: Sequence[Opinion]) -> Importance:
    """With an error that knows of the other finds: proposals of many parts miss what others see.

    Where tails are heavy and opinions that seemed good fell far short, this one may, too.
    """
    good = [one.found.log_evidence for one in opinions if one.found.good]
    missed = max([*good, found.log_evidence]) - found.log_evidence
    khat = max(found.khat, before.khat)
    short = found.log_evidence - min([*good, found.log_evidence]) if khat > _HEAVY else 0.0
    hidden = hidden_error(khat, found.draws)
    return found._replace(error=math.hypot(found.error, missed / 2, min(short, 4.0) / 4, hidden), khat=khat)


def _rank(found: Importance, opinions: Sequence[Opinion]) -> tuple[bool, float]:
    """First those that nobody contradicts, then those with the smallest error."""
    return not any(_above(other.found, found) for other in opinions), -found.error


def _is_good(opinion: Opinion | None) -> bool:
    return opinion is not None and opinion.found.good


def _confirms(outer: Opinion | None, best: Opinion | None) -> bool:
    """Whether a search that started at the prior found most of it, too."""
    if outer is None or best is None or outer.found.effective_draws < FEW_DRAWS:
        return False
    return outer.found.log_evidence > best.found.log_evidence - _MISSING


def _covers(around: Opinion, deep: Opinion) -> bool:
    """Whether draws around the prior tell the evidence by themselves: then no mode was missed on the way."""
    many = around.found.effective_draws >= _COVERING
    return many and _is_good(around) and _is_good(deep) and _same(around, deep)


def _above(one: Importance, other: Importance, errors: float = 4) -> bool:
    return one.log_evidence - other.log_evidence > _AGREED + errors * math.hypot(one.error, other.error)


def _same(one: Opinion, other: Opinion) -> bool:
    return not _above(one.found, other.found) and not _above(other.found, one.found)


def _judged(
    found: Importance, witness: Tempered | None, opinions: Sequence[Opinion], *, confirmed: bool
) -> Evidence:
    """Importance sampling, in the light of what else was found."""
    doubts: list[Doubt] = []
    if not found.good:
        doubts.append("khat")
    if any(_above(other.found, found) for other in opinions):
        doubts.append("disagreement")
    if witness is not None:
        gap = witness.log_evidence - found.log_evidence
        wide = _AGREED + 3 * math.hypot(found.error, witness.error)
        if gap > wide and witness.spread < _SPREAD:
            return Evidence(
                witness.log_evidence,
                max(witness.error, gap / 2),
                "smc",
                found.khat,
                found.effective_draws,
                ("disagreement",),
                witness.particles,
            )
        if witness.spread < _SPREAD:
            confirmed = confirmed or (witness.from_prior and gap > -wide - _MISSING)
            found = found._replace(error=math.hypot(found.error, max(gap - witness.error, 0.0) / 2))
    if not confirmed:
        doubts.append("alone")
    return Evidence(
        found.log_evidence, found.error, "importance", found.khat, found.effective_draws, tuple(doubts)
    )


def _by_particles(witness: Tempered | None, opinions: Sequence[Opinion]) -> Evidence:
    """Where no importance sampling works: the larger of what it says and what particles say."""
    top = max(
        (one.found for one in opinions if one.found.effective_draws >= FEW_DRAWS),
        key=lambda found: found.log_evidence,
        default=None,
    )
    if top is not None and (witness is None or top.log_evidence > witness.log_evidence):
        gap = 0.0 if witness is None else top.log_evidence - witness.log_evidence
        error = math.hypot(top.error, gap / 2)
        return Evidence(
            top.log_evidence, error, "importance", top.khat, top.effective_draws, ("khat", "alone")
        )
    if witness is None:
        return Evidence(-math.inf, math.inf, "importance", math.inf, 0.0, ("khat", "alone"))
    # Populations that all miss the same thing do not differ by it.
    doubts: tuple[Doubt, ...] = ("khat", "spread")
    if witness.spread < _SPREAD and witness.error < _SURE:
        doubts = () if witness.from_prior else ("khat", "alone")
    khat = math.nan if top is None else top.khat
    # Eight populations tell their own error roughly: by a quarter more it holds as often as it should.
    return Evidence(
        witness.log_evidence, 1.25 * witness.error, "smc", khat, math.nan, doubts, witness.particles
    )
