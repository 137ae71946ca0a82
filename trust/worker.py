"""One case in a process of its own: a line of JSON for each seed.

python -m trust.worker "coin (numpyro)" 0 1 2
"""

import dataclasses
import json
import sys
import time

import pathmix
from trust.case import Case
from trust.judge import Run, total_variation


def weigh(case: Case, posterior: pathmix.Posterior) -> dict:
    """Weights of the posterior by the keys of the answer."""
    weights: dict = {}
    for path in posterior.paths:
        key = case.key(path)
        weights[key] = weights.get(key, 0.0) + path.weight
    return weights


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
