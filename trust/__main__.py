"""Put inference with default options to the test.

    python -m trust [--only coin mixtures pyro] [--seeds 3] [--quick] [--processes 2]

Every case runs in a process of its own, so that none can spoil another, and writes RESULTS.md as it goes.
"""

import argparse
import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from trust import report
from trust.case import Case
from trust.judge import Run, worst
from trust.suite import chosen

ROOT = Path(__file__).parents[1]
MINUTES = 20  # for all seeds of a case


def measure(case: Case, seeds: range, minutes: float) -> list[Run]:
    """All seeds of a case; those that a dead or slow process left out have failed."""
    begun = time.perf_counter()
    command = [sys.executable, "-m", "trust.worker", case.title, *map(str, seeds)]
    try:
        out = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=60 * minutes)
        printed, failure = out.stdout, f"the process died: {(out.stderr.strip().splitlines() or ['?'])[-1]}"
    except subprocess.TimeoutExpired as error:
        printed = (error.stdout or b"").decode()
        failure = f"not done after {minutes:g} minutes"
    runs = [Run(**json.loads(line)) for line in printed.splitlines() if line.startswith("{")]
    done = {run.seed for run in runs}
    seconds = time.perf_counter() - begun
    return runs + [Run(case.title, seed, seconds, failure=failure) for seed in seeds if seed not in done]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[], help="names, families or libraries")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="one seed")
    parser.add_argument("--processes", type=int, default=2, help="cases at a time")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="time for all seeds of a case")
    parser.add_argument("--results", type=Path, help="where the page goes; RESULTS.md where all cases run")
    options = parser.parse_args()
    cases = chosen(options.only)
    seeds = range(1 if options.quick else options.seeds)
    # A part of the cases, or one seed, is no page for others to read.
    whole = not options.only and not options.quick
    page = options.results or (report.RESULTS if whole else None)
    finished: list[tuple[Case, list[Run]]] = []
    print(report.line(report.COLUMNS), flush=True)
    with ThreadPoolExecutor(options.processes) as pool:
        for case, runs in zip(
            cases, pool.map(lambda case: measure(case, seeds, options.minutes), cases), strict=True
        ):
            finished.append((case, runs))
            print(report.line(report.cells(case, runs)), flush=True)
            if page:
                report.write(finished, page)
    print(report.totals(finished))
    return int(any(worst(runs).judgement in ("WRONG OK", "failed") for _, runs in finished))


if __name__ == "__main__":
    sys.exit(main())
