"""Tempered SMC for one path: populations of particles that start around its prior, or around its guide."""

import math
from functools import partial
from typing import NamedTuple

import numpy as np

from pathmix.engine.requests import Asking, Request, asked
from pathmix.evidence.proposal import Proposal
from pathmix.evidence.search import Search, Weighted, where_inside
from pathmix.evidence.tempered import Arrived, Population, evaluations, make_tempered, tempered_types
from pathmix.posterior.evidence import Particles
from pathmix.program.seeds import Seed

_POPULATIONS, _PARTICLES = 8, 256
_MOST_TEMPERATURES = 60
_WIDER = 2.0


class Tempered(NamedTuple):
    """What populations of particles found together."""

    log_evidence: float
    error: float
    spread: float  # between populations
    particles: Particles
    from_prior: bool  # particles that start around the guide cannot tell that it has missed nothing


def tempered(search: Search, most: int, guide: Weighted | None = None) -> Asking[Tempered | None]:
    """By `most` densities, from the prior or from draws of the guide; None if that is not enough.

    Particles know all orders of exchangeable members, and a guide one of them.
    """
    temperatures = min(_MOST_TEMPERATURES, most // evaluations(_POPULATIONS * _PARTICLES, 1))
    if temperatures < 2:
        return None
    start = search.around_prior if guide is None else _around(guide)
    seed = search.seed.child(2 if guide is None else 21)
    wanted = _POPULATIONS * _PARTICLES
    inside, tried = [np.zeros((0, search.fit.target.dim))], 0
    for attempt in range(search.fit.options.rejection_tries):
        vectors = start.draw(seed.child(0, attempt).generator(), wanted)
        seen = yield from search.fit.densities(vectors)
        inside.append(vectors[np.isfinite(where_inside(seen.log_joint + seen.log_det, seen.inside))])
        tried += wanted
        if sum(map(len, inside)) >= wanted:
            break
    rows = np.concatenate(inside)
    if len(rows) < wanted:
        return None
    arrived = yield from _sent(search, start, rows[:wanted], seed.child(1), temperatures)
    if any(float(one.temperature) < 1 for one in arrived):
        return None
    return _averaged(arrived, math.log(len(rows) / tried), from_prior=guide is None)


def as_draws(search: Search, found: Tempered) -> Asking[Weighted]:
    """Particles as if they were draws of a proposal with the same evidence, with members in order."""
    vectors, weights = found.particles
    vectors, _ = yield from search.ordered(vectors)
    shares = np.maximum(weights * len(weights), 1e-300)
    return Weighted(vectors, np.log(shares) + found.log_evidence, np.full(len(vectors), np.nan))


def _around(guide: Weighted) -> Proposal:
    """Wider than the guide, whose scales are often too small."""
    found = Proposal.of(guide.vectors)
    return Proposal(found.loc, _WIDER * found.factor)


def _sent(
    search: Search, start: Proposal, rows: np.ndarray, seed: Seed, temperatures: int
) -> Asking[list[Arrived]]:
    fit = search.fit
    particles = rows.reshape(_POPULATIONS, _PARTICLES, -1)
    requests = [
        Request(
            ("tempered", fit.target.structure, _PARTICLES),
            partial(make_tempered, fit.target.formula, _PARTICLES),
            fit.target.arguments,
            Population(seed.child(number).key_words(), particles[number], start, temperatures),
            types=partial(tempered_types, particles[number]),
            footprint=_PARTICLES * fit.target.graphs.density.footprint,
        )
        for number in range(_POPULATIONS)
    ]
    arrived = yield from asked(requests)
    fit.evaluations += sum(evaluations(_PARTICLES, int(one.temperatures)) for one in arrived)
    return arrived


def _averaged(arrived: list[Arrived], log_share: float, *, from_prior: bool) -> Tempered:
    """The mean over populations, which is unbiased, with the error that their differences tell."""
    logs = np.array([float(one.log_ratio) for one in arrived]) + log_share
    top = logs.max()
    ratios = np.exp(logs - top)
    shares = ratios / ratios.sum()
    return Tempered(
        log_evidence=float(top + np.log(ratios.mean())),
        error=float(ratios.std(ddof=1) / ratios.mean() / math.sqrt(len(ratios))),
        spread=float(logs.std(ddof=1)) if np.all(np.isfinite(logs)) else math.inf,
        particles=Particles(
            np.concatenate([one.particles for one in arrived]),
            np.repeat(shares / _PARTICLES, _PARTICLES),
        ),
        from_prior=from_prior,
    )
