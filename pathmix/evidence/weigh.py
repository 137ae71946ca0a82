"""The evidences of all paths: quickly where a path may carry weight, thoroughly where it does."""

import logging
import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

from pathmix.discovery.contenders import Contender
from pathmix.engine.requests import Asking
from pathmix.evidence.search import Search, begin
from pathmix.evidence.settle import quick, settle
from pathmix.posterior.evidence import HOPELESS, UNKNOWN, Doubt, Efforts, Evidence
from pathmix.training.fit import PathFit
from pathmix.training.importance import Importance
from pathmix.training.phases import Workshop

_log = logging.getLogger("pathmix")

_NEGLIGIBLE = 2e-3  # a weight; beneath it nothing is settled
_SMALL = 1e-2  # one up to which a posterior that looks like one blob needs no second opinion
_MOST_HOPES = 16
_CHUNK = 32  # paths that are looked at before it is asked whether more can matter
_WEIGHT_ERROR = 0.003  # that a path may bring to a weight
_LEAST_ERROR = 0.01  # that an evidence is asked for
_WORK = 1.5e11  # bytes that densities for one path may write: half a minute, where they are large

Fitting = Contender[PathFit]


def weigh(
    workshop: Workshop, fittings: Sequence[Fitting], contenders: Sequence[Fitting], efforts: Efforts | None
) -> None:
    """Give every path an evidence; without efforts, the one that the draws for the ELBO tell.

    Paths whose guides fit badly (they were set aside early, maybe) may have much more than their guides
    show. They are looked at in the order of what they show, until a whole chunk of them does not matter.
    """
    copies = Counter(id(one.work) for one in contenders)
    for one in fittings:
        one.work.evidence = _first(one.work)
    if efforts is None:
        return
    open_ones = [one for one in fittings if one.work.searchable]
    searches: dict[int, Search] = {}
    plain: set[int] = set()

    def look(one: Fitting) -> Asking[None]:
        fit = one.work
        search = yield from begin(fit, one.draws, fit.elbo_seed.child(1_000), _affordable(fit, efforts))
        searches[id(fit)] = search
        found = yield from quick(search)
        if found is None:
            return
        # Only this one knows of exchangeable members.
        if found.found.good or found.found.effective_draws > fit.evidence.effective_draws:
            fit.evidence = _of_importance(found.found)
            if search.is_plain(found):
                plain.add(id(fit))

    def finish(one: Fitting, error: float) -> Asking[None]:
        fit = one.work
        found = yield from settle(searches[id(fit)], _affordable(fit, efforts), error)
        if found.settled or not found.log_evidence < fit.evidence.log_evidence:
            fit.evidence = found
        else:  # estimates are unbiased: what was seen before cannot be too much by far
            fit.evidence = fit.evidence._replace(doubts=found.doubts)

    def shares() -> np.ndarray:
        logs = np.array([one.work.evidence.log_evidence + math.log(copies[id(one.work)]) for one in fittings])
        top = np.max(logs[np.isfinite(logs)], initial=-np.inf)
        if not np.isfinite(top):
            return np.zeros(len(logs))
        found = np.where(np.isfinite(logs), np.exp(np.minimum(logs - top, 0.0)), 0.0)
        return found / found.sum()

    def hopes() -> list[Fitting]:
        """Some paths whose evidences are not known, and may be much larger than what was seen of them."""
        top = max((one.work.evidence.log_evidence for one in fittings), default=-math.inf)
        found = [
            one
            for one in open_ones
            if id(one.work) in searches
            and not one.work.evidence.settled
            and one.work.evidence.log_evidence > top - HOPELESS
        ]
        return sorted(found, key=lambda one: -one.work.evidence.log_evidence)[:_MOST_HOPES]

    waiting = sorted(open_ones, key=lambda one: -one.work.evidence.log_evidence)
    stopping = workshop.executor.stopping  # by Ctrl-C: what is not settled stays in doubt
    while waiting and not stopping.is_set():
        chunk, waiting = waiting[:_CHUNK], waiting[_CHUNK:]
        workshop.to_the_end(chunk, lambda one: _kept(one, look(one)))
        weight = dict(zip(map(id, fittings), shares(), strict=True))
        if sum(weight[id(one)] for one in chunk) < _NEGLIGIBLE:
            break
    done: set[int] = set()
    while not stopping.is_set():
        weight = dict(zip(map(id, fittings), shares(), strict=True))
        rivals = [
            one
            for one in open_ones
            if id(one) not in done
            and id(one.work) in searches
            and (weight[id(one)] >= (_SMALL if id(one.work) in plain else _NEGLIGIBLE) or one in hopes())
        ]
        if not rivals:
            return
        done |= set(map(id, rivals))
        errors = {id(one): _wanted_error(weight[id(one)]) for one in rivals}
        workshop.to_the_end(rivals, lambda one, errors=errors: _kept(one, finish(one, errors[id(one)])))


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
    if fit.estimate is None or fit.failure is not None or not np.isfinite(fit.estimate.elbo):
        return UNKNOWN
    if fit.target.dim == 0:
        return Evidence(fit.estimate.elbo, 0.0, "exact")
    assert fit.importance is not None
    found = _of_importance(fit.importance)
    return found if found.settled else found._replace(doubts=("unsought",))


def _of_importance(found: Importance) -> Evidence:
    doubts: tuple[Doubt, ...] = () if found.good else ("khat",)
    return Evidence(found.log_evidence, found.error, "importance", found.khat, found.effective_draws, doubts)


def _wanted_error(weight: float) -> float:
    return max(_LEAST_ERROR, _WEIGHT_ERROR / max(weight * (1 - weight), 1e-9)) if weight < 1 else _LEAST_ERROR


def _affordable(fit: PathFit, efforts: Efforts) -> Efforts:
    """The efforts, less where densities are large."""
    most = int(_WORK // max(fit.target.graphs.density.volume, 1))
    return Efforts(min(efforts.draws, most), min(efforts.smc, most), efforts.symmetry)
