"""A race between starts of one path, within a phase of training."""

from collections.abc import Sequence

import numpy as np

from pathmix.engine.requests import Asking, together
from pathmix.guides.base import Params, moments
from pathmix.program.seeds import Seed
from pathmix.program.values import SiteRows, SiteValues
from pathmix.training.fit import PathFit
from pathmix.training.options import Told
from pathmix.training.pooled import Prior
from pathmix.training.starts import Start, Starts

_FARTHEST = 2.0  # a candidate lies up to so many times as far from the prior's mean as a prior draw
# A guide starts so many times as wide as the prior. Wide ones see farther, narrow ones keep what is special
# about their place: the first ones around the prior are of both kinds, and not very narrow.
_WIDE, _NARROW = 0.3, (0.1, 0.03, 0.01, 0.003)
_TRIALS = 8  # draws that tell which of the narrow ones
_SAME_PLACE = 0.2  # of the prior's standard deviation
_RIVAL = 3.0  # nats, up to which another place may be another mode
_SAME_LEVEL = 1.0  # nats


def race(
    fit: PathFit,
    options: Starts,
    iterations: int,
    prior: Prior,
    donors: Sequence[SiteValues],
    log_c: float,
    told: Told,
) -> Asking[None]:
    """Train the best start so far against new ones, and then the winner, for `iterations` in all.

    `donors` are what other paths found for some of this path's sites.
    """
    assert fit.start is not None
    new = yield from _new_starts(fit, options, options.candidates(iterations), prior, donors)
    entrants = [fit.start, *new]
    steps = int(options.share * iterations) // len(entrants)
    if len(entrants) > 1 and steps > 0:
        try:
            # Jumps are looked for where the winner goes on.
            yield from together(
                [fit.advance(entrant, steps, log_c, told, looking=False) for entrant in entrants]
            )
        finally:  # the best so far stays, even if the race is broken off
            levels = [entrant.level(max(steps // 2, 1)) for entrant in entrants]
            fit.start = entrants[int(np.argmax(levels))]
        _compare(fit, [entrant.state.params for entrant in entrants], np.array(levels))
        iterations -= steps * len(entrants)
    yield from fit.train(iterations, log_c, told)


def _compare(fit: PathFit, params: Sequence[Params], levels: np.ndarray) -> None:
    """Note whether all starts have ended at the same place, as good as each other, or some elsewhere."""
    _, scale = moments(fit.vectors)
    centres = np.stack([fit.centre(one) for one in params])
    elsewhere = np.max(np.abs(centres - fit.centre(fit.params)) / scale, axis=1) >= _SAME_PLACE
    level = bool(np.all(np.isfinite(levels))) and np.ptp(levels) < _SAME_LEVEL
    fit.starts_agreed = bool(not np.any(elsewhere) and level)
    fit.starts_apart |= bool(np.any(elsewhere & (levels > np.max(levels) - _RIVAL)))


def _new_starts(
    fit: PathFit, options: Starts, size: int, prior: Prior, donors: Sequence[SiteValues]
) -> Asking[list[Start]]:
    """Narrow guides at the best candidates of each kind."""
    vectors = fit.finite_vectors
    if len(vectors) == 0:
        return []
    seed = fit.training_seed.child(fit.blocks, 0)
    around_prior = _around_prior(vectors, prior.mean, size, seed.child(0))
    changed, borrowed = [], []
    third = options.third
    if fit.steps > 0 and third > 0:
        others = _around_prior(vectors, prior.mean, size, seed.child(3))
        changed = yield from _best(fit, _one_site_changed(fit, others, seed.child(1)), third)
    if donors and third > 0:
        borrowed = yield from _borrowed(fit, prior.draws, donors, third, size, seed.child(2))
    informed = changed + borrowed
    fresh = yield from _best(fit, around_prior, options.count - len(informed))
    if not fresh and not informed:
        return []
    shape = vectors - vectors.mean(axis=0)
    far, near = (fresh, informed) if fit.steps == 0 else ([], [*fresh, *informed])
    widths = [_WIDE if turn % 2 else _NARROW[0] for turn in range(len(far))]
    widths += yield from _as_wide_as_pays(fit, near, shape, seed.child(5))
    points = [*far, *near]
    return [fit.start_from(point + width * shape) for point, width in zip(points, widths, strict=True)]


def _as_wide_as_pays(
    fit: PathFit, points: Sequence[np.ndarray], shape: np.ndarray, seed: Seed
) -> Asking[list[float]]:
    """Widths for guides around some points, narrower ones where that promises a larger ELBO.

    A period is known to a thousandth of it; a guide that is wider leaves what was found before it learns to
    be narrow.
    """
    if not points:
        return []
    rows = shape[seed.generator().integers(len(shape), size=_TRIALS)]
    vectors = np.array(points)[:, None, None] + np.array(_NARROW)[:, None, None] * rows
    densities = yield from _densities(fit, vectors.reshape(-1, vectors.shape[-1]))
    gains = densities.reshape(vectors.shape[:-1]).mean(axis=-1) + vectors.shape[-1] * np.log(_NARROW)
    return [_NARROW[int(np.argmax(gain))] for gain in gains]


def _around_prior(vectors: np.ndarray, mean: np.ndarray, count: int, seed: Seed) -> np.ndarray:
    """From the prior's mean to beyond a prior draw: some posteriors lie where the prior rarely goes."""
    generator = seed.generator()
    drawn = vectors[generator.integers(len(vectors), size=count)]
    return mean + generator.uniform(0, _FARTHEST, (count, 1)) * (drawn - mean)


def _one_site_changed(fit: PathFit, others: np.ndarray, seed: Seed) -> np.ndarray:
    """The centre of the best guide so far, with one site taken from another vector."""
    candidates = np.tile(fit.centre(fit.params), (len(others), 1))
    slices = fit.target.coordinates.slices
    for row, site in enumerate(seed.generator().integers(len(slices), size=len(others))):
        start, stop = slices[site]
        candidates[row, start:stop] = others[row, start:stop]
    return candidates


def _borrowed(
    fit: PathFit, draws: SiteRows, donors: Sequence[SiteValues], count: int, size: int, seed: Seed
) -> Asking[list[np.ndarray]]:
    """The best with what a donor has found, and prior draws elsewhere: one for each of the best donors."""
    each, generator = -(-count * size // len(donors)), seed.generator()
    parts = [taken_over(draws, generator.integers(len(fit.vectors), size=each), donor) for donor in donors]
    candidates = fit.unconstrained({name: np.concatenate([part[name] for part in parts]) for name in draws})
    densities = yield from _densities(fit, candidates)
    best = [
        start + int(np.argmax(densities[start : start + each])) for start in range(0, len(candidates), each)
    ]
    ranked = sorted((row for row in best if densities[row] > -np.inf), key=lambda row: -densities[row])
    return [candidates[row] for row in ranked[:count]]


def taken_over(draws: SiteRows, rows: np.ndarray, donor: SiteValues) -> SiteRows:
    """Prior draws with the donor's values for the sites that it has."""
    taken = {name: np.broadcast_to(value, (len(rows), *value.shape)) for name, value in donor.items()}
    return {name: values[rows] for name, values in draws.items()} | taken


def _best(fit: PathFit, vectors: np.ndarray, count: int) -> Asking[list[np.ndarray]]:
    """The vectors of highest density."""
    densities = yield from _densities(fit, vectors)
    usable = np.flatnonzero(densities > -np.inf)
    return [vectors[row] for row in usable[np.argsort(-densities[usable])][:count]]


def _densities(fit: PathFit, vectors: np.ndarray) -> Asking[np.ndarray]:
    """Of vectors; -inf where one cannot start."""
    found = yield from fit.screened(vectors)
    densities = found.log_joint + found.log_det
    return np.where(found.inside & np.isfinite(densities), densities, -np.inf)
