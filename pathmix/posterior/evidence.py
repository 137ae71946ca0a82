"""What is known of a path's evidence, and how much may be done for it."""

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

EvidenceMethod = Literal["exact", "importance", "smc", "elbo"]
# Too heavy tails of importance weights; nobody to confirm it; estimates that contradict each other;
# populations of particles that do; a search that ended with an error; no search, for the path seemed to have
# no weight; nothing to estimate it from.
Doubt = Literal["khat", "alone", "disagreement", "spread", "failed", "unsought", "none"]
FEW_DRAWS = 20  # effective ones: with fewer, an evidence may be off by any number of nats
HOPELESS = 60.0  # nats below the best path: farther down, a doubted evidence does not matter


class Particles(NamedTuple):
    """Weighted vectors that stand for a path's posterior."""

    vectors: np.ndarray
    weights: np.ndarray  # sum to one


@dataclass(frozen=True)
class Efforts:
    """How much may be done for the evidence of one path."""

    draws: int = 200_000  # of importance sampling
    smc: int = 1_000_000  # densities, for tempered SMC
    symmetry: bool = True


class Evidence(NamedTuple):
    """The evidence of a path."""

    log_evidence: float
    error: float  # its standard error
    method: EvidenceMethod
    khat: float = math.nan
    effective_draws: float = math.nan
    doubts: tuple[Doubt, ...] = ()  # why it is not to be relied on
    particles: Particles | None = None  # that take the place of the guide's draws

    def doubted(self, doubt: Doubt) -> "Evidence":
        return self if doubt in self.doubts else self._replace(doubts=(*self.doubts, doubt))

    @property
    def settled(self) -> bool:
        return not self.doubts

    @property
    def is_known(self) -> bool:
        """Roughly, at least."""
        return self.method == "exact" or self.effective_draws >= FEW_DRAWS

    def is_hopeless(self, best: float) -> bool:
        return is_hopeless(self.method, self.log_evidence, self.effective_draws, best)


def is_hopeless(method: EvidenceMethod, log_evidence: float, effective_draws: float, best: float) -> bool:
    """Whether an evidence is far below the best one, and known well enough for that to be said."""
    known = method in ("exact", "smc") or effective_draws >= FEW_DRAWS
    return known and log_evidence < best - HOPELESS


NO_DENSITY = Evidence(-math.inf, 0.0, "exact")
UNKNOWN = Evidence(-math.inf, math.nan, "elbo", doubts=("none",))
