"""What can be relied on, in a few sentences."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from pathmix.discovery.report import DiscoveryReport
from pathmix.posterior.evidence import Doubt, is_hopeless
from pathmix.posterior.fitted import FittedPath
from pathmix.posterior.stacking import Stacked
from pathmix.posterior.status import Status
from pathmix.posterior.weights import Weighting

_HOPELESS = 1e-3  # prior runs on paths, below which more of them will hardly do
_ROUNDING = 1e-12  # of masses that add up to one
_NOTABLE = 0.01  # a weight
_BEYOND_DOUBT = 3.0  # errors
_PRECISE = 0.015  # total variation that errors of weights may bring
_REMEDIES: dict[Doubt, str] = {
    "khat": "importance weights with too heavy tails (k-hat above 0.7, or few effective draws); a larger "
    "budget, starts=12, guide='flow' or smc_evaluations=10_000_000 may mend it",
    "alone": "an evidence that nothing else confirms; smc_evaluations=10_000_000 may",
    "disagreement": "two estimates that disagree beyond their errors, so that modes may be missing; "
    "starts=12 or a larger budget may mend it",
    "spread": "populations of particles that ended far apart; smc_evaluations=10_000_000 may mend it",
    "failed": "an evidence whose search ended with an error",
    "unsought": "evidences that were not looked for",
    "none": "no evidence at all",
}


@dataclass(frozen=True)
class Verdict:
    """Whether the weights are right within their errors, and what is known about it.

    Attributes:
        ok: whether they are.
        resolved: sentences on what is known.
        open: sentences on what is not, and what would change that.
    """

    ok: bool
    resolved: tuple[str, ...]
    open: tuple[str, ...]

    def __str__(self) -> str:
        word = "The weights are right within their errors." if self.ok else "The weights are not settled."
        return " ".join([word, *self.resolved, *self.open])


def judged(
    paths: Sequence[FittedPath],
    errors: Sequence[float],
    report: DiscoveryReport,
    flaws: Sequence[str],
    *,
    interrupted: bool,
    weighting: Weighting,
    sought: bool,
    stacked: Stacked | None,
) -> Verdict:
    """`errors` are those of weights by evidence; `flaws` say why these cannot be right, whatever they are."""
    if not paths or all(path.weight == 0 for path in paths):
        return Verdict(False, (), ("No path carries weight.",))
    found = [*flaws, *_doubted(paths), *_imprecise(paths, errors), *_unseen(paths, report)]
    if interrupted:
        found.insert(0, "The run was interrupted.")
    if weighting == "elbo":
        found.insert(0, "Weights are made of ELBOs, which are below the evidences by unknown amounts.")
    elif not sought:
        found.insert(0, "Evidences are those that guides alone tell; weights='evidence' looks further.")
    if stacked is not None:
        found[:0] = _on_stacking(stacked)
        return Verdict(False, (), tuple(found))
    found += _without_weight(paths)
    # What was not weighed in the end may come before all others.
    resolved = [] if interrupted else _resolved(paths, errors)
    return Verdict(not found, tuple(resolved), tuple(found))


def _resolved(paths: Sequence[FittedPath], errors: Sequence[float]) -> list[str]:
    """How many of the first paths are in an order beyond doubt."""
    if len(paths) == 1 or paths[1].weight < 1e-4:
        return [f"{paths[0].short_label} has all the weight among the paths seen."] if len(paths) > 1 else []
    count = 0
    for one, other in pairwise(paths):
        apart = one.log_evidence - other.log_evidence
        error = float(np.hypot(one.log_evidence_error, other.log_evidence_error))
        if one.doubts or other.doubts or not apart > _BEYOND_DOUBT * error:
            break
        count += 1
        if other.weight < _NOTABLE:
            break
    if count == 0:
        return [f"Which of {paths[0].short_label} and {paths[1].short_label} comes first is not resolved."]
    if count == 1:
        return [f"{paths[0].short_label} comes first beyond doubt ({_share(paths[0].weight, errors[0])})."]
    return [f"The order of the first {count + 1} paths is beyond doubt."]


def _doubted(paths: Sequence[FittedPath]) -> list[str]:
    """What is wrong with the evidences of paths that may carry weight."""
    found: list[str] = []
    # What is in doubt is more often too small than too large, so a small weight excuses nobody.
    best = max(path.log_evidence for path in paths)
    doubted = [
        path
        for path in paths
        if path.doubts
        and path.status.usable
        and not is_hopeless(path.evidence_method, path.log_evidence, path.effective_draws, best)
    ]
    if not doubted:
        return []
    for doubt, words in _REMEDIES.items():
        having = [path for path in doubted if doubt in path.doubts]
        if having:
            named = having[0].short_label + (", ..." if len(having) > 1 else "")
            verb = "have" if len(having) > 1 else "has"
            found.append(f"{_paths(len(having))} of {len(paths)} ({named}) {verb} {words}.")
    return found


def _on_stacking(stacked: Stacked) -> list[str]:
    found = ["Weights are those that predict best: they are no probabilities of paths."]
    if stacked.heavy:
        found.append(
            f"{stacked.heavy} of {stacked.observations} observations change a path's posterior so much "
            "(k-hat above 0.7) that leaving them out is rough."
        )
    return found


def _without_weight(paths: Sequence[FittedPath]) -> list[str]:
    """Paths that carry none because nothing is known of them."""
    found = []
    broken = [path for path in paths if path.status in (Status.NAN, Status.FAILED)]
    if broken:
        found.append(
            f"{_paths(len(broken))} could not be computed ({broken[0].status}): {broken[0].short_label}."
        )
    missed = [
        path
        for path in paths
        if path.status in (Status.ZERO, Status.OUTSIDE) and path.evidence_method != "exact"
    ]
    if missed:
        found.append(
            f"In {_paths(len(missed))} no draw had any density ({missed[0].short_label}), so that nothing is "
            "known of the weight there."
        )
    return found


def _unseen(paths: Sequence[FittedPath], report: DiscoveryReport) -> list[str]:
    """Whether paths that nobody has seen can matter."""
    mass = min(report.unseen_bound + report.dropped_mass, 1.0)
    if mass == 0:
        return []
    # The best marginal likelihood among the paths, relative to that of all together.
    best = max((path.weight / path.prior_mass for path in paths if path.prior_mass > 0), default=1.0)
    share, times = mass * best / (1 + mass * best), _NOTABLE / (mass * best)
    percent = "all" if share > 0.995 else f"{100 * share:.2g}%"
    matters = f"it has {percent} of the weight if it is as likely as the best path seen"
    if times > 1:
        matters = f"it matters if the data are {times:.2g} times as likely there as on the best path seen"
    at_most = "" if report.unseen_is_exact else "Up to "
    advice = f"More prior runs see more of it (discovery=pathmix.PriorDiscovery({10 * report.samples:_}))."
    if report.unseen_is_exact and mass > _ROUNDING:
        cover = f"{1 - mass / 100:.{max(2 - math.floor(math.log10(mass)), 3)}f}".rstrip("0").rstrip(".")
        advice = f"discovery=pathmix.Enumeration(cover={cover}) looks for what is probable there."
    elif mass * report.samples < _HOPELESS:
        advice = "No prior run will come there; discovery=pathmix.Guided(rounds=100) may."
    return [f"{at_most}{100 * mass:.2g}% of the prior mass is unseen: {matters}. {advice}"]


def _imprecise(paths: Sequence[FittedPath], errors: Sequence[float]) -> list[str]:
    """Whether the errors are too large for the weights to say much."""
    if sum(errors) / 2 <= _PRECISE:
        return []
    worst = max(paths, key=lambda path: path.weight * path.log_evidence_error)
    return [
        f"The weights are known to {max(errors):.2f} only, for the evidence of {worst.short_label} is hard "
        "to estimate: a larger budget, or evidence_draws=2_000_000, brings it closer."
    ]


def _share(weight: float, error: float) -> str:
    return f"weight {with_error(weight, error)}"


def with_error(value: float, error: float, most: int = 4) -> str:
    """As many digits as the error allows."""
    if not np.isfinite(error) or not np.isfinite(value):
        return f"{value:.{most}f}"
    digits = most if error <= 0 else int(np.clip(1 - np.floor(np.log10(error)), 0, most))
    return f"{value:.{digits}f} ± {error:.{digits}f}"


def _paths(count: int) -> str:
    return f"{count} path" + ("s" if count > 1 else "")
