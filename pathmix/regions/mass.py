"""The prior probability of a box, where its elements are drawn one by one from known distributions."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from numpyro import distributions

from pathmix.program.slp import Site, StraightLineProgram
from pathmix.regions.expressions import expressions
from pathmix.regions.witnesses import Box


def probability(slp: StraightLineProgram, box: Box) -> float | None:
    """None where a prior is not known, or depends on free sites: elements are not independent then."""
    total = 1.0
    for number in sorted({site for site, _ in box}):
        mine = [(position, interval) for (site, position), interval in box.items() if site == number]
        parameters = _parameters(slp, slp.sites[number])
        if parameters is None:
            return None
        positions = [position for position, _ in mine]
        lower = np.array([interval.lower for _, interval in mine])
        upper = np.array([interval.upper for _, interval in mine])
        below = [_below(slp.sites[number], parameters, positions, ends) for ends in (lower, upper)]
        total *= float(np.prod(np.clip(below[1] - below[0], 0.0, 1.0)))
    return total if np.isfinite(total) else None


def _parameters(slp: StraightLineProgram, site: Site) -> list[np.ndarray] | None:
    """Of the prior of a site, if they are numbers along the path."""
    if site.prior is None:
        return None
    slots = [slot for slot in site.prior.parameters if isinstance(slot, int)]
    computed = iter(expressions(slp.graph.outputs(slots), [one.pinned for one in slp.sites]) if slots else ())
    found = []
    for slot in site.prior.parameters:
        if not isinstance(slot, int):
            found.append(slot)
            continue
        expression = next(computed)
        if expression.free:
            return None
        found.append(np.asarray(expression.value()))
    return found


def _below(
    site: Site, parameters: Sequence[np.ndarray], positions: Sequence[int], ends: np.ndarray
) -> np.ndarray:
    """The probability that elements are below some numbers."""
    assert site.prior is not None
    own = [np.broadcast_to(values, site.shape).ravel()[list(positions)] for values in parameters]
    finite = np.isfinite(ends)
    # Families take their parameters in the order in which front ends note them.
    family = getattr(distributions, site.prior.family)
    cdf = np.asarray(family(*own, validate_args=False).cdf(jnp.asarray(np.where(finite, ends, 0.0))))
    return np.where(finite, _within_support(site, positions, ends, cdf), np.where(ends > 0, 1.0, 0.0))


def _within_support(site: Site, positions: Sequence[int], ends: np.ndarray, cdf: np.ndarray) -> np.ndarray:
    """With what formulas need not say outside of the support."""
    assert site.bounds is not None
    low, high = (np.broadcast_to(bound, site.shape).ravel()[list(positions)] for bound in site.bounds)
    return np.where(ends <= low, 0.0, np.where(ends >= high, 1.0, cdf))
