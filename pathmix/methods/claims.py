"""Paths for which a first look is enough.

A path claims the weight that its evidence gives it, if that is settled. If it is not, it claims what its
prior mass would have at the best mean likelihood of any path, if that is more. What claims little, all of it
together, needs no training.
"""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from pathmix.discovery.contenders import Contender
from pathmix.evidence.weigh import NEGLIGIBLE
from pathmix.posterior.weights import path_weights
from pathmix.training.fit import PathFit

_TOGETHER = 0.05  # of the weight: each of them as little as nobody asks for a second opinion on
_UNSETTLED = 1e-4  # a claim that is not settled may be wrong by far


def small(contenders: Sequence[Contender[PathFit]], *, crowded: bool = False) -> set[PathFit]:
    """The problems that were looked at and claim least, as long as they claim next to nothing.

    Together they may claim no more than little. Where it is `crowded`, training is no better than a look, and
    this holds for those only whose evidence is not settled.
    """
    logs = [one.work.evidence.log_evidence for one in contenders]
    if not np.any(np.isfinite(logs)):
        return set()
    weights = path_weights(logs)
    best = max(
        (
            weight / one.prior_mass
            for one, weight in zip(contenders, weights, strict=True)
            if one.prior_mass > 0 and one.work.evidence.is_known
        ),
        default=np.inf,
    )
    claims: dict[PathFit, float] = defaultdict(float)  # twins claim together
    for one, log, weight in zip(contenders, logs, weights, strict=True):
        settled = one.work.evidence.settled and np.isfinite(log)
        claims[one.work] += weight if settled else _claim(log, weight, one.prior_mass * best)
    found, total = set[PathFit](), 0.0
    for fit, claim in sorted(claims.items(), key=lambda item: item[1]):
        if not claim < NEGLIGIBLE:
            break
        counts = not (crowded and fit.evidence.settled)
        total += claim if counts else 0.0
        if not counts or total <= _TOGETHER:
            found.add(fit)
    return found


def _claim(log_evidence: float, weight: float, by_mass: float) -> float:
    """Of an evidence that is not settled. Without any, nothing can be said."""
    claim = max(weight, by_mass)
    return claim if np.isfinite(log_evidence) and claim <= _UNSETTLED else np.inf
