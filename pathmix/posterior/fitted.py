"""What became of one path: a component of the posterior, as the user sees it."""

import math
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from pathmix.guides.base import Guide, Params
from pathmix.posterior.evidence import Doubt, EvidenceMethod
from pathmix.posterior.status import Status
from pathmix.program.path import Path
from pathmix.regions.region import Region
from pathmix.target.labels import shortened
from pathmix.target.layout import Layout

GradientKind = Literal["reparam", "mixed", "score", "truncated"]


@dataclass(frozen=True)
class FittedGuide:
    """A variational family with its trained parameters, on the unconstrained vector of a path."""

    family: Guide
    params: Params
    layout: Layout  # which part of the vector belongs to which site


@dataclass(frozen=True, eq=False)
class FittedPath:
    """One component of the posterior.

    Attributes:
        label: what it is called.
        path: its identity.
        weight: its posterior probability.
        log_evidence: of the path, with its prior probability.
        log_evidence_error: standard error of the estimate; NaN where it is not known.
        evidence_method: how the evidence was found.
        doubts: why it is not to be relied on; none if it is.
        khat: Pareto shape of its importance weights: up to 0.7 they can be relied on.
        elbo: NaN for methods that have none.
        elbo_error: standard error of the estimate.
        acceptance: share of the guide's draws inside the region; NaN without a guide.
        steps: of training.
        status: how it fared, in a word.
        message: the same in a sentence.
        region: where its sites lead the program along this path.
        prior_mass: its probability where that is known, else its share of the prior runs.
        likelihood_evaluations: one on a minibatch counts as one.
        gradient: how the gradient was estimated.
        effective_draws: how many independent draws its importance draws are worth.
        chain_acceptance: share of the proposals that its chains accepted.
        failure: what ended the work on this path.
        guide: the family, its trained parameters, and where sites are in its vector.
        parameters: of the program, as they are here.
        history: the ELBO estimate of every training step.
        phases: how many of these steps were done when phases of training ended.
    """

    label: str
    path: Path
    weight: float
    log_evidence: float
    log_evidence_error: float
    evidence_method: EvidenceMethod
    doubts: tuple[Doubt, ...]
    khat: float
    elbo: float
    elbo_error: float
    acceptance: float
    steps: int
    status: Status
    message: str
    region: Region
    prior_mass: float
    likelihood_evaluations: int
    gradient: GradientKind | None = None
    effective_draws: float = math.nan
    chain_acceptance: float = math.nan
    failure: Exception | None = None
    guide: FittedGuide | None = field(default=None, repr=False)
    parameters: dict[str, Any] = field(default_factory=dict, repr=False)
    history: np.ndarray = field(default_factory=lambda: np.zeros(0), repr=False)
    phases: tuple[int, ...] = ()

    @property
    def short_label(self) -> str:
        """Its label, cut in the middle if it is long."""
        return shortened(self.label)

    @property
    def addresses(self) -> tuple[str, ...]:
        """The names of all latent sites of the path, in order."""
        return self.path.addresses

    @property
    def pinned(self) -> dict[str, Any]:
        """The values of its discrete sites, by name."""
        return dict(self.path.pinned)
