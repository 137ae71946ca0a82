"""A first look at a path for which nothing has been trained, nor compiled but its density.

Importance sampling, from its prior on and from what other paths have found for sites of the same names.
"""

import math
from collections.abc import Sequence

import numpy as np

from pathmix.engine.requests import Asking
from pathmix.evidence.search import (
    Search,
    Weighted,
    few_particles,
    of_importance,
    together,
    where_inside,
)
from pathmix.evidence.symmetry import exchangeable
from pathmix.program.seeds import Seed
from pathmix.program.values import SiteRows, SiteValues
from pathmix.training.fit import PathFit
from pathmix.training.race import taken_over

_EVALUATIONS = 40_000  # at most
_IN_A_CROWD = 16_000
_PARTS = (1, 1, 1, 4, 4, 4)  # of proposals, round by round
_BORROWED = 500  # vectors around what another path has found
_AROUND = 0.1  # of the prior's standard deviation
_MOST_PARTICLES = 256


def scout(
    fit: PathFit,
    draws: SiteRows,
    lent: Sequence[SiteValues],
    seed: Seed,
    *,
    crowded: bool = False,
    hopeless: float = -math.inf,
) -> Asking[None]:
    """Give a path an evidence; `lent` are values of some of its sites.

    With less effort if there is a crowd of them. An evidence beneath `hopeless` need not be precise.
    """
    fit.vectors = fit.unconstrained(draws)
    search = Search(fit, (), seed, fit.evaluations + (_IN_A_CROWD if crowded else _EVALUATIONS))
    around = yield from search.from_prior(seed.child(0))
    starts = [around.drawn]
    for number, values in enumerate(lent):
        starts.append((yield from _near(fit, draws, values, around.drawn, seed.child(1, number))))
    fitted = yield from search.fitted(together(starts), seed.child(2), _PARTS, hopeless)
    better = fitted is not None and fitted.found.effective_draws > around.found.effective_draws
    best = fitted if fitted is not None and better else around
    fit.evidence = of_importance(best.found)
    matters = fit.evidence.settled and not best.found.log_evidence < hopeless and fit.target.dim > 1
    if matters and (yield from exchangeable(fit, draws)):  # of whose orders the search has seen some, or all
        fit.evidence = fit.evidence.doubted("alone")
    if best.drawn.shares is not None:
        count = few_particles(fit.target.dim, _MOST_PARTICLES)
        found = yield from search.particles(best.drawn, seed.child(3), count)
        fit.evidence = fit.evidence._replace(particles=found)


def place(fit: PathFit) -> Asking[SiteValues]:
    """Where a first look has found a path to be: the values of its free sites in the middle of its draws."""
    assert fit.evidence.particles is not None
    middle = np.median(fit.evidence.particles.vectors, axis=0)
    values = yield from fit.constrained(middle[None])
    return {site.name: rows[0] for site, rows in zip(fit.target.sites, values, strict=True)}


def _near(
    fit: PathFit, draws: SiteRows, values: SiteValues, around: Weighted, seed: Seed
) -> Asking[Weighted]:
    """Prior draws with what another path has found for their sites, to start a proposal from."""
    generator = seed.generator()
    rows = generator.integers(len(fit.vectors), size=_BORROWED)
    vectors = fit.unconstrained(taken_over(draws, rows, values))
    finite = np.all(np.isfinite(vectors), axis=1)
    vectors = np.where(finite[:, None], vectors, fit.vectors[rows])
    scale = np.std(fit.finite_vectors, axis=0) if len(fit.finite_vectors) else 1.0
    vectors = vectors + _AROUND * scale * generator.standard_normal(vectors.shape)
    seen = yield from fit.densities(vectors)
    density = where_inside(seen.log_joint + seen.log_det, seen.inside)
    # As good as the best draws around the prior, for all that is known of their proposal.
    top = np.max(around.log_ratios) if np.any(np.isfinite(around.log_ratios)) else 0.0
    return Weighted(vectors, density - np.max(density, initial=-1e300) + top, density)
