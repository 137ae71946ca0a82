"""What became of a program of the catalogue."""

import time
from dataclasses import dataclass
from typing import Literal

import numpy as np

import pathmix
from benchmarks.catalogue.entry import EVIDENCE, Entry

DRAWS = 10_000
CLOSE = 0.1  # posterior standard deviations of a quantity, of which 0.04 are four errors of as many draws
CLOSE_EVIDENCE = 0.03  # nats, or four stated errors if those are more

# "unsure" is a wrong answer whose verdict is not ok.
Status = Literal["right", "refused", "unsure", "WRONG", "FAILED", "SLOW"]
GOOD: tuple[Status, ...] = ("right", "refused")


@dataclass(frozen=True)
class Outcome:
    status: Status
    seconds: float
    details: str  # the numbers, or what was said


def tried(entry: Entry) -> Outcome:
    """One run of a program, with the options that it needs and otherwise defaults."""
    begun = time.perf_counter()
    try:
        posterior = pathmix.SDVI(entry.model, progress=False, **entry.options).run(0, *entry.args)
    except pathmix.PathmixError as error:
        said = f"{type(error).__name__}: {error}"
        expected = bool(entry.refused) and entry.refused in said
        return Outcome("refused" if expected else "FAILED", time.perf_counter() - begun, said)
    except Exception as error:
        return Outcome("FAILED", time.perf_counter() - begun, f"{type(error).__name__}: {error}")
    seconds = time.perf_counter() - begun
    if entry.answers is None:
        return Outcome("FAILED", seconds, "it should have been refused")
    return judged(entry, posterior, seconds)


def judged(entry: Entry, posterior: pathmix.Posterior, seconds: float) -> Outcome:
    """All numbers of the answer against those of the posterior."""
    assert entry.answers is not None
    draws = posterior.sample(0, DRAWS)
    right, told = True, []
    for name, exact in entry.answers().items():
        if name == EVIDENCE:
            found, allowed = posterior.log_evidence, max(CLOSE_EVIDENCE, 4 * posterior.log_evidence_error)
        else:
            values = np.asarray(entry.read[name](draws), float)
            found, allowed = values.mean(), max(CLOSE * values.std(), 1e-6)
            # A quantity that never varied among the draws may be rare, and no more.
            allowed = max(allowed, 4 / DRAWS if values.std() == 0 else 0.0)
        right &= bool(abs(found - exact) <= allowed)
        told.append(f"{name} {found:.4g} ({exact:.4g})")
    if not posterior.verdict.ok:
        told.append(str(posterior.verdict))
    status: Status = "right" if right else "WRONG" if posterior.verdict.ok else "unsure"
    return Outcome(status, seconds, "; ".join(told))
