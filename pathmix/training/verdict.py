"""What became of a path, in a word and a sentence."""

from pathmix.status import Status
from pathmix.training.fit import PathFit


def verdict(fit: PathFit) -> tuple[Status, str]:
    if fit.failure is not None:
        return Status.FAILED, f"{type(fit.failure).__name__}: {fit.failure}"
    found = fit.estimate
    assert found is not None
    if found.acceptance == 0:
        return Status.OUTSIDE, (
            f"None of {found.draws} draws of the guide fell inside the path's region; "
            "the path carries no weight."
        )
    if found.nan_density > 0:
        return Status.NAN, (
            f"The log-density is NaN for {found.nan_density:.0%} of the guide's draws; the path carries "
            "no weight. Look for 0/0, the log of a negative number, or a covariance that is not positive "
            "definite."
        )
    if found.zero_density > 0:
        return Status.ZERO, (
            f"{found.zero_density:.1%} of the guide's draws have zero density (log-density -inf), so the "
            "ELBO is -inf; the path carries no weight."
        )
    if fit.target.dim == 0:
        return Status.EXACT, "No free site; the weight of this path is exact."
    if fit.steps == 0:
        return Status.UNTRAINED, "The budget left no iteration for this path; its guide is the prior's."
    skipped = f" {fit.unusable} steps had no usable gradient." if fit.unusable else ""
    if fit.dropped:
        return Status.DROPPED, (
            f"Set aside by the allocation after {fit.steps} steps; it keeps its guide and its weight."
            f"{skipped}"
        )
    return Status.OK, f"Trained for {fit.steps} steps.{skipped}"
