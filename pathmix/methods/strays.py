"""Where guides stray to: draws outside of the regions of their paths, which lie on other paths."""

from collections.abc import Sequence

import numpy as np

from pathmix.discovery.contenders import Contender
from pathmix.engine.requests import Asking
from pathmix.program.path import Path
from pathmix.program.values import SiteRows
from pathmix.training.fit import PathFit
from pathmix.training.phases import Workshop

_PATHS = 8
_DRAWS = 64
_KEPT = 16
_WIDER = 2.0  # than the draws of a path that has no guide yet


def strays(workshop: Workshop, ranked: Sequence[Contender[PathFit]]) -> dict[Path, SiteRows]:
    """Of the best paths that draws can miss, the free sites of some that did."""
    general = [one for one in ranked if one.target.region.kind == "general" and _is_known(one.work)]
    found: dict[Path, SiteRows] = {}

    def look(one: Contender[PathFit]) -> Asking[None]:
        fit = one.work
        vectors = yield from _drawn(fit)
        seen = yield from fit.densities(vectors)
        values = yield from fit.constrained(vectors)
        finite = np.all(np.isfinite(vectors), axis=1)
        rows = np.flatnonzero(~np.asarray(seen.inside) & finite)[:_KEPT]
        if len(rows):
            named = zip(fit.target.sites, values, strict=True)
            found[one.slp.path] = {site.name: np.asarray(column)[rows] for site, column in named}

    workshop.to_the_end(general[:_PATHS], look)
    return found


def _is_known(fit: PathFit) -> bool:
    return fit.start is not None or fit.evidence.particles is not None


def _drawn(fit: PathFit) -> Asking[np.ndarray]:
    """Draws of the guide; before there is one, those of a first look, farther from their middle."""
    if fit.start is not None:
        return (yield from fit.calls.sampled(fit.params, fit.elbo_seed.child(3_000), _DRAWS))
    assert fit.evidence.particles is not None
    found = fit.evidence.particles.vectors[:_DRAWS]
    return np.mean(found, axis=0) + _WIDER * (found - np.mean(found, axis=0))
