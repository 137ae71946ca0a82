"""Paths, each with what a method found for it, become a posterior."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic

import numpy as np

from pathmix.discovery import Discovered
from pathmix.discovery.contenders import Contender, Work
from pathmix.discovery.forks import tree_of
from pathmix.discovery.report import DiscoveryReport
from pathmix.engine.precision import Engine
from pathmix.engine.timings import Timings
from pathmix.posterior.components import Component
from pathmix.posterior.evidence import NO_DENSITY, Evidence
from pathmix.posterior.fitted import FittedGuide, FittedPath, GradientKind
from pathmix.posterior.notes import common_notes
from pathmix.posterior.posterior import Posterior
from pathmix.posterior.provenance import Provenance
from pathmix.posterior.status import Status
from pathmix.posterior.weights import Weighting, path_weights
from pathmix.program.lifting import parameters_of
from pathmix.program.program import Program
from pathmix.program.seeds import Seed


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a method found for a path."""

    evidence: Evidence
    elbo: float
    elbo_error: float
    steps: int
    evaluations: int
    status: Status
    message: str
    component: Component
    acceptance: float = math.nan
    chain_acceptance: float = math.nan
    gradient: GradientKind | None = None
    guide: FittedGuide | None = None
    history: np.ndarray = field(default_factory=lambda: np.zeros(0))
    phases: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Judged(Generic[Work]):
    """A contender, as the posterior has it."""

    contender: Contender[Work]
    fitted: FittedPath
    component: Component


def judge(
    contenders: Sequence[Contender[Work]],
    outcome_of: Callable[[Contender[Work]], Outcome],
    weighting: Weighting = "evidence",
) -> list[Judged[Work]]:
    """All contenders with their weights, best first."""
    outcomes = [outcome_of(contender) for contender in contenders]
    weights = path_weights(
        [outcome.elbo if weighting == "elbo" else outcome.evidence.log_evidence for outcome in outcomes]
    )
    judged = []
    for contender, outcome, weight in zip(contenders, outcomes, weights, strict=True):
        status, message = _ruled_out(contender) or (outcome.status, outcome.message)
        is_zero = contender.flaw is not None and contender.flaw.kind == "zero"
        evidence = NO_DENSITY if is_zero else outcome.evidence
        fitted = FittedPath(
            label=contender.label,
            path=contender.slp.path,
            weight=float(weight),
            log_evidence=evidence.log_evidence,
            log_evidence_error=evidence.error,
            evidence_method=evidence.method,
            doubts=evidence.doubts,
            khat=evidence.khat,
            elbo=outcome.elbo,
            elbo_error=outcome.elbo_error,
            acceptance=outcome.acceptance,
            steps=outcome.steps,
            status=status,
            message=message,
            region=contender.target.region,
            prior_mass=contender.prior_mass,
            likelihood_evaluations=outcome.evaluations,
            gradient=outcome.gradient,
            effective_draws=evidence.effective_draws,
            chain_acceptance=outcome.chain_acceptance,
            failure=contender.failure,
            guide=outcome.guide,
            history=outcome.history,
            phases=outcome.phases,
        )
        judged.append(Judged(contender, fitted, outcome.component))
    return sorted(judged, key=lambda one: (-one.fitted.weight, -one.fitted.log_evidence))


_OF_FLAWS = {"impossible": Status.IMPOSSIBLE, "zero": Status.ZERO, "NaN": Status.NAN}


def _ruled_out(contender: Contender[Work]) -> tuple[Status, str] | None:
    """What every method says of a path on which work has failed, or which cannot have produced the data."""
    if contender.failure is not None:
        return Status.FAILED, f"{type(contender.failure).__name__}: {contender.failure}"
    if contender.flaw is not None:
        return _OF_FLAWS[contender.flaw.kind], f"{contender.flaw.message} The path carries no weight."
    return None


def combine(
    program: Program,
    found: Discovered,
    judged: Sequence[Judged[Work]],
    own_notes: Sequence[str],
    *,
    log_d_min: float,
    engine: Engine,
    interrupted: bool,
    timings: Timings | None = None,
    weighting: Weighting = "evidence",
    flaws: Sequence[str] = (),
    sought: bool = True,
    seed: Seed | None = None,
    made: Provenance | None = None,
) -> Posterior:
    """The posterior, with a method's own notes first."""
    report = DiscoveryReport.of(found, log_d_min=log_d_min)
    paths = [
        (slp, replace(one.fitted, parameters=parameters_of(slp, program.params)))
        for one in judged
        for slp in (one.contender.slp,)
    ]
    return Posterior(
        paths=tuple(fitted for _, fitted in paths),
        discovery=report,
        tree=found.tree
        or tree_of((path.slp, path.draws, round(path.prior_mass * found.samples)) for path in found.paths),
        notes=(*own_notes, *common_notes(program, found, report, paths)),
        interrupted=interrupted,
        _program=program,
        _components=tuple(one.component for one in judged),
        _engine=engine,
        timings=timings,
        provenance=made,
        weighting=weighting,
        _flaws=tuple(flaws),
        _sought=sought,
        _seed=seed,
    )
