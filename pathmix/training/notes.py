"""What training tells about a result as a whole."""

from collections.abc import Sequence

import numpy as np

from pathmix.posterior.fitted import FittedPath
from pathmix.posterior.status import Status
from pathmix.training.fit import PathFit
from pathmix.training.verdict import rise_left

_NEGLIGIBLE = 0.01  # a weight


def training_notes(
    fits: Sequence[PathFit], fitted: Sequence[FittedPath], *, interrupted: bool, by_elbo: bool
) -> list[str]:
    notes = []
    if interrupted:
        notes.append(_on_interruption(fits, by_elbo=by_elbo))
    # Evidences do not wait for guides.
    if rising := _still_rising([fit for fit in fits if by_elbo or not fit.evidence.settled], fits):
        notes.append(
            f"The ELBO of {_paths(rising)} that may carry weight was still rising when training ended; the "
            "weights are not settled. Raise the budget, or the learning rate."
        )
    if untrained := sum(p.status is Status.UNTRAINED and p.weight > _NEGLIGIBLE for p in fitted):
        notes.append(
            f"{_paths(untrained)} with weight could not be trained, or the budget left no iteration; the "
            "guides are near the prior. The path's message says more."
        )
    if blind := sum(bool(fit.watch.jumping) and fit.gradient.estimator == "reparam" for fit in fits):
        notes.append(
            f"The density of {_paths(blind)} jumps where the guide is, which reparameterised gradients do "
            "not see. Use gradient='score'."
        )
    return notes


def _on_interruption(fits: Sequence[PathFit], *, by_elbo: bool) -> str:
    left = [fit for fit in fits if fit.estimate is None]
    weighed = f"{len(fits) - len(left)} of {len(fits)} paths were weighed, with the guides reached by then"
    seen = 0 if by_elbo else sum(np.isfinite(fit.evidence.log_evidence) for fit in left)
    first_look = f"{seen} have the evidence of a first look, " if seen else ""
    return f"Training was interrupted: {weighed}; {first_look}the others carry no weight."


def training_flaws(fits: Sequence[PathFit]) -> list[str]:
    """Why weights cannot be right, whatever their errors."""
    if reached := sorted({name for fit in fits if fit.inert_reach for name in fit.target.inert}):
        return [
            f"Masked elements of {', '.join(map(repr, reached))} change the density where the guide is, but "
            "not at prior draws, so they were not fitted: do not rely on the paths that have them. Give "
            "these elements a site of their own, without a mask."
        ]
    return []


def _still_rising(some: Sequence[PathFit], fits: Sequence[PathFit]) -> int:
    """How many of some paths may gain weight: those that would carry some after as much training again."""
    best = max((fit.elbo for fit in fits), default=-np.inf)
    hopes = [fit.elbo + 4 * rise for fit in some if (rise := rise_left(fit)) > 0 and np.isfinite(fit.elbo)]
    return sum(hope > best + np.log(_NEGLIGIBLE) for hope in hopes)


def _paths(count: int) -> str:
    return f"{count} path" + ("s" if count > 1 else "")
