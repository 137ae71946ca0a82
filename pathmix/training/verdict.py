"""What became of a path, in a word and a sentence."""

import numpy as np

from pathmix.status import Status
from pathmix.training.fit import PathFit

_NOTABLE_RISE = 0.5  # nats


def verdict(fit: PathFit) -> tuple[Status, str]:
    if fit.failure is not None:
        return Status.FAILED, f"{type(fit.failure).__name__}: {fit.failure}"
    found = fit.estimate
    if found is None:
        return Status.UNTRAINED, "The run was interrupted before this path's turn; it carries no weight."
    if found.acceptance == 0:
        return Status.OUTSIDE, (
            f"None of {found.draws} draws of the guide fell inside the path's region; "
            "the path carries no weight."
        )
    if found.broken_density > 0:
        return Status.NAN, (
            f"The log-density is NaN or infinite for {found.broken_density:.1%} of the guide's draws; the "
            "path carries no weight. Look for 0/0, the log of a negative number, or a covariance that is "
            "not positive definite."
        )
    if found.zero_density > 0:
        return Status.ZERO, (
            f"{found.zero_density:.1%} of the guide's draws have zero density (log-density -inf), so the "
            "ELBO is -inf; the path carries no weight."
        )
    if fit.target.dim == 0:
        return Status.EXACT, "No free site; the weight of this path is exact."
    if fit.steps == 0:
        return (
            Status.UNTRAINED,
            "The budget left no iteration for this path; its guide is near its prior.",
        )
    skipped = f" {fit.unusable} steps had no usable gradient." if fit.unusable else ""
    if fit.dropped:
        return Status.DROPPED, (
            f"Set aside by the allocation after {fit.steps} steps; it keeps its guide and its weight."
            f"{skipped}"
        )
    if (rise := still_rising(fit)) > 0:
        return Status.OK, (
            f"Trained for {fit.steps} steps.{skipped} The ELBO still rose by {rise:.1f} nats over the last "
            "quarter of training: a larger budget would raise it further."
        )
    return Status.OK, f"Trained for {fit.steps} steps.{skipped}"


def still_rising(fit: PathFit) -> float:
    """By how much the ELBO rose over the last quarter of training; 0 where it is flat or not clear."""
    history = fit.history[fit.start.annealed if fit.start else 0 :]
    quarter = len(history) // 4
    before, after = history[-2 * quarter : -quarter], history[len(history) - quarter :]
    before, after = before[np.isfinite(before)], after[np.isfinite(after)]
    if min(len(before), len(after)) < 25:
        return 0.0
    rise = float(after.mean() - before.mean())
    error = float(np.hypot(after.std() / np.sqrt(len(after)), before.std() / np.sqrt(len(before))))
    return rise if rise > _NOTABLE_RISE + 4 * error else 0.0
