"""What became of a path, in a word and a sentence."""

from pathmix.posterior.evidence import Doubt
from pathmix.posterior.status import Status
from pathmix.training.fit import PathFit

_NOTABLE_RISE = 0.5  # nats
_DOUBTS: dict[Doubt, str] = {
    "khat": "Its importance weights have too heavy tails, or too few draws count: its evidence is rough.",
    "alone": "Nothing else confirms its evidence.",
    "disagreement": "Two estimates of its evidence disagree beyond their errors: modes may be missing.",
    "spread": "Populations of particles ended far apart: its evidence is rough.",
    "failed": "The search for its evidence failed, so it is that of the guide.",
    "unsought": "Its evidence was not looked for, for it seemed to have no weight.",
    "none": "It has no evidence.",
}
_SET_ASIDE = "Set aside after a first look, untrained: its weight is small."
_LONG = 1_000  # steps, from which on a rise by less is nothing


def verdict(fit: PathFit) -> tuple[Status, str]:
    found = fit.estimate
    if fit.was_set_aside:
        why = "Interrupted after a first look." if fit.was_cut_off else _SET_ASIDE
        told = f"{why}{_on_evidence(fit)}"
        return (Status.OK if fit.evidence.settled else Status.DROPPED), told
    if found is None:
        return Status.UNTRAINED, "The run was interrupted before this path's turn; it carries no weight."
    if found.acceptance == 0 and fit.evidence.particles is None:
        if found.lost > 0:
            return Status.NAN, (
                "The guide has diverged: it is so stretched that rounding takes its density away. A smaller "
                "learning rate, or guide='meanfield', keeps it from that. The path carries no weight."
            )
        return (Status.ZERO if found.zero_density > 0 else Status.OUTSIDE), _on_missing(fit)
    if found.broken_density > 0:
        return Status.NAN, (
            f"The log-density is NaN or infinite for {found.broken_density:.1%} of the guide's draws; the "
            "path carries no weight. Look for 0/0, the log of a negative number, or a covariance that is "
            "not positive definite."
        )
    if fit.target.dim == 0:
        return Status.EXACT, "No free site; the weight of this path is exact."
    if fit.steps == 0 or fit.unusable == fit.steps:
        settled = fit.evidence.settled
        return Status.OK if settled else Status.UNTRAINED, f"{_untrained(fit)}{_on_evidence(fit)}"
    skipped = f" {fit.unusable} steps had no usable gradient." if fit.unusable else ""
    scored = f" {_on_jumps(fit)}" if fit.watch.jumping else ""
    rising = f" {_on_rise(fit)}" if rise_left(fit) > 0 else ""
    trained = f"Trained for {fit.steps} steps."
    if found.acceptance == 0:
        why = "Its guide has diverged" if found.lost > 0 else "No draw of its guide has any density"
        trained += f" {why}; it has the draws that its evidence was found with."
    if fit.dropped:
        trained = f"Set aside by the allocation after {fit.steps} steps; it keeps its guide and its weight."
    told = f"{trained}{skipped}{scored}{rising}{_on_evidence(fit)}"
    if fit.evidence.settled:
        return Status.OK, told
    return (Status.DROPPED if fit.dropped else Status.ROUGH), told


def _on_missing(fit: PathFit) -> str:
    """Of a path in which no draw of the guide fell, and which nothing else has found either."""
    assert fit.estimate is not None
    if fit.target.dim == 0:
        return "No free site, and the data are impossible; the path has no weight, exactly."
    if fit.estimate.zero_density > 0:
        return (
            "Every draw of the guide inside the path's region has zero density (log-density -inf); the path "
            "carries no weight."
        )
    sites = sorted(set(fit.target.slp.indicators))
    supports = f" (where the support of {' and '.join(sites)} covers the data)" if sites else ""
    return (
        f"None of {fit.estimate.draws} draws of the guide fell inside the path's region{supports}; "
        "the path carries no weight."
    )


def _untrained(fit: PathFit) -> str:
    if fit.steps == 0:
        return "The budget left no iteration for this path; its guide is near its prior."
    return (
        f"None of {fit.steps} steps had a usable gradient: it was NaN or infinite, or no draw fell inside "
        "the path's region. The guide is near its prior."
    )


def _on_evidence(fit: PathFit) -> str:
    """Why the evidence is not to be relied on."""
    return "".join(f" {_DOUBTS[doubt]}" for doubt in fit.evidence.doubts)


def rise_left(fit: PathFit) -> float:
    """By how much the ELBO rose over the last quarter of training; 0 where it is flat or not clear.

    In a short training a quarter is few steps, and a small rise tells of more to come.
    """
    if fit.rise is None:
        return 0.0
    notable = _NOTABLE_RISE * min(1.0, fit.steps / _LONG)
    return fit.rise.nats if fit.rise.nats > notable + 4 * fit.rise.error else 0.0


def _on_rise(fit: PathFit) -> str:
    return (
        f"The ELBO still rose by {rise_left(fit):.1f} nats over the last quarter of training: a larger "
        "budget would raise it further."
    )


def _on_jumps(fit: PathFit) -> str:
    names = ", ".join(repr(fit.target.sites[index].name) for index in sorted(fit.watch.jumping))
    if fit.gradient.estimator == "reparam":
        return f"The density jumps as {names} move, which reparameterised gradients do not see."
    return f"The density jumps as {names} move, so their gradients are estimated by the score function."
