"""Try every program of the catalogue, and write docs/programs.md.

    python -m benchmarks.catalogue [--only geometric urn] [--seconds 120]

Each program has a process of its own and the whole machine; its time is that of the run, without imports.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

from benchmarks.catalogue import page
from benchmarks.catalogue.outcome import GOOD, Outcome
from benchmarks.catalogue.programs import entries, kinds

ROOT = Path(__file__).parents[2]
IMPORTS = 60  # seconds that a process may take beside the run


def outcome(name: str, seconds: float) -> Outcome:
    command = [sys.executable, "-m", "benchmarks.catalogue.worker", name]
    try:
        out = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=seconds + IMPORTS)
    except subprocess.TimeoutExpired:
        return Outcome("SLOW", seconds, f"not done after {seconds:g} seconds")
    lines = [line for line in out.stdout.splitlines() if line.startswith("{")]
    if not lines:
        said = (out.stderr.strip().splitlines() or ["nothing was said"])[-1]
        return Outcome("FAILED", 0.0, f"the process died: {said}")
    found = Outcome(**json.loads(lines[-1]))
    return found if found.seconds <= seconds else Outcome("SLOW", found.seconds, found.details)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[], help="names of programs; then no page is written")
    parser.add_argument("--seconds", type=float, default=120.0, help="a run may take")
    options = parser.parse_args()
    if unknown := sorted(set(options.only) - set(entries())):
        raise SystemExit(f"no program is called {', '.join(unknown)}")
    outcomes: dict[str, Outcome] = {}
    for name, entry in entries().items():
        if options.only and name not in options.only:
            continue
        outcomes[name] = outcome(name, options.seconds)
        found = outcomes[name]
        print(
            f"{name:<28}{entry.library:<9}{found.status:<9}{found.seconds:6.1f} s  {found.details}",
            flush=True,
        )
    if not options.only:
        page.write(kinds(), outcomes)
    return int(any(found.status not in GOOD for found in outcomes.values()))


if __name__ == "__main__":
    sys.exit(main())
