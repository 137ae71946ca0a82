"""How good one run is, and one case."""

import math
from dataclasses import dataclass
from typing import Literal

RIGHT = 0.03  # total variation of path weights
FAR = 4.0  # stated errors of the log evidence, beyond which an `ok` is suspicious,
SMALL = 0.02  # unless the log evidence is off by less than this

Judgement = Literal["right", "honest", "WRONG OK", "failed"]
ORDER: tuple[Judgement, ...] = ("right", "honest", "failed", "WRONG OK")  # from good to bad


@dataclass(frozen=True)
class Run:
    """One seed of one case."""

    title: str
    seed: int
    seconds: float
    total_variation: float = math.nan
    z: float = math.nan  # (log evidence - exact) / stated error; NaN where it is not known
    log_evidence_gap: float = math.nan
    ok: bool = False
    verdict: str = ""
    failure: str = ""  # an exception, or that time was up

    @property
    def judgement(self) -> Judgement:
        if self.failure:
            return "failed"
        if self.total_variation <= RIGHT:
            return "right"
        return "WRONG OK" if self.ok else "honest"

    @property
    def suspicious(self) -> bool:
        """Whether it is sure of a log evidence that is far off by its own measure."""
        return self.ok and abs(self.z) > FAR and abs(self.log_evidence_gap) > SMALL


def total_variation(weights: dict, exact: dict) -> float:
    """Half of the absolute differences; keys that only one side has count."""
    return 0.5 * sum(
        abs(weights.get(key, 0.0) - exact.get(key, 0.0)) for key in weights.keys() | exact.keys()
    )


def worst(runs: list[Run]) -> Run:
    """The run that stands for a case: the worst judgement, and of those the largest total variation."""
    return max(runs, key=lambda run: (ORDER.index(run.judgement), run.total_variation))
