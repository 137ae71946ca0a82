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
    """One component of the posterior."""

    label: str
    path: Path
    weight: float
    log_evidence: float
    log_evidence_error: float  # standard error of the estimate; NaN where it is not known
    evidence_method: EvidenceMethod  # how the evidence was found
    doubts: tuple[Doubt, ...]  # why it is not to be relied on; none if it is
    khat: float  # Pareto shape of its importance weights: up to 0.7 they can be relied on
    elbo: float  # NaN for methods that have none
    elbo_error: float  # standard error of the estimate
    acceptance: float  # share of the guide's draws inside the region; NaN without a guide
    steps: int
    status: Status
    message: str
    region: Region  # where its sites lead the program along this path
    prior_mass: float  # its probability where that is known, else its share of the prior runs
    likelihood_evaluations: int  # one on a minibatch counts as one
    gradient: GradientKind | None = None
    effective_draws: float = math.nan  # how many independent draws its importance draws are worth
    chain_acceptance: float = math.nan  # share of the proposals that its chains accepted
    failure: Exception | None = None  # what ended the work on this path
    guide: FittedGuide | None = field(default=None, repr=False)
    parameters: dict[str, Any] = field(default_factory=dict, repr=False)  # of the program, as they are here
    # The ELBO estimate of every training step.
    history: np.ndarray = field(default_factory=lambda: np.zeros(0), repr=False)
    phases: tuple[int, ...] = ()  # how many of these steps were done when phases of training ended

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
