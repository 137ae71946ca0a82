"""What became of one path: a component of the posterior, as the user sees it."""

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from pathmix.guides.base import Guide, Params
from pathmix.posterior.status import Status
from pathmix.program.path import Path

GradientKind = Literal["reparam", "mixed", "score", "truncated"]


@dataclass(frozen=True)
class FittedGuide:
    """A variational family with its trained parameters, on the unconstrained vector of a path."""

    family: Guide
    params: Params


@dataclass(frozen=True, eq=False)
class FittedPath:
    """One component of the posterior."""

    label: str
    path: Path
    weight: float
    log_evidence: float  # an estimate, or its lower bound, the ELBO
    elbo: float  # NaN for methods that have none
    acceptance: float  # share of the guide's draws inside the region, or of a chain's proposals
    steps: int
    status: Status
    message: str
    region: str  # free, box or general
    prior_mass: float  # its probability where that is known, else its share of the prior runs
    likelihood_evaluations: int  # one on a minibatch counts as one
    gradient: GradientKind | None = None
    failure: Exception | None = None  # what ended the work on this path
    guide: FittedGuide | None = field(default=None, repr=False)
    # The ELBO estimate of every training step.
    history: np.ndarray = field(default_factory=lambda: np.zeros(0), repr=False)

    @property
    def addresses(self) -> tuple[str, ...]:
        return self.path.addresses

    @property
    def pinned(self) -> dict[str, Any]:
        return dict(self.path.pinned)
