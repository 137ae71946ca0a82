"""One case in a process of its own: a line of JSON for each seed.

python -m trust.worker "coin (numpyro)" 0 1 2
"""

import dataclasses
import json
import sys
import time
from typing import Any, NamedTuple, cast

import numpy as np

import pathmix
from trust.case import Case
from trust.judge import Run, total_variation

DRAWS = 200_000  # which tell the probability of values that were summed out to 0.001


class WithValues(NamedTuple):
    """A path with values of the sites that are summed out along it."""

    pinned: dict
    addresses: tuple[str, ...]


def weigh(case: Case, posterior: pathmix.Posterior) -> dict:
    """Weights of the posterior by the keys of the answer."""
    weights: dict = {}
    summed = any(path.path.summed for path in posterior.paths)
    draws = posterior.sample(0, DRAWS) if summed else None
    for place, path in enumerate(posterior.paths):
        for found, share in [(path, 1.0)] if draws is None else shares(path, draws, place):
            key = case.key(cast(pathmix.FittedPath, found))
            weights[key] = weights.get(key, 0.0) + path.weight * share
    return weights


def shares(path: pathmix.FittedPath, draws: pathmix.Draws, place: int) -> list[tuple[Any, float]]:
    """A path with each setting of what was summed out, and how many of its draws have that."""
    names = path.path.summed
    rows = np.flatnonzero(draws.path == place)
    if not names or not len(rows):
        return [(path, 1.0)]
    values = np.stack([draws[name][rows] for name in names], axis=1)
    settings, counts = np.unique(values, axis=0, return_counts=True)
    return [
        (
            WithValues(path.pinned | dict(zip(names, row.tolist(), strict=True)), path.addresses),
            count / len(rows),
        )
        for row, count in zip(settings, counts, strict=True)
    ]


def run(case: Case, seed: int) -> Run:
    """Defaults only: what a user gets who sets nothing."""
    begun = time.perf_counter()
    posterior = pathmix.SDVI(case.model, progress=False).run(seed, *case.args)
    seconds = time.perf_counter() - begun
    gap = posterior.log_evidence - case.log_evidence
    return Run(
        title=case.title,
        seed=seed,
        seconds=seconds,
        total_variation=total_variation(weigh(case, posterior), case.weights),
        log_evidence_gap=gap,
        # Rounding counts as no error where the evidence is exact.
        z=gap / max(posterior.log_evidence_error, 1e-6),
        ok=posterior.verdict.ok,
        verdict=str(posterior.verdict),
    )


def main() -> None:
    from trust.suite import CASES

    title, *seeds = sys.argv[1:]
    for seed in map(int, seeds):
        begun = time.perf_counter()
        try:
            found = run(CASES[title], seed)
        except Exception as error:
            failure = f"{type(error).__name__}: {error}"
            found = Run(title, seed, time.perf_counter() - begun, failure=failure)
        print(json.dumps(dataclasses.asdict(found)), flush=True)


if __name__ == "__main__":
    main()
