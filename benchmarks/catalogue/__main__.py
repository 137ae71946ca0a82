"""Try every program of the catalogue, and write docs/programs.md.

    python -m benchmarks.catalogue [--only geometric urn [--page]] [--seconds 120] [--processes 1]

Each program has a process and two processors of its own; its time is that of the run, without imports.
"""

import argparse
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue

from benchmarks.catalogue import page
from benchmarks.catalogue.outcome import GOOD, Outcome
from benchmarks.catalogue.programs import entries, kinds

ROOT = Path(__file__).parents[2]
IMPORTS = 60  # seconds that a process may take beside the run
PROCESSORS = 2  # for each


def outcome(name: str, seconds: float, free: "Queue[tuple[int, ...]]") -> Outcome:
    """What became of one program, on processors that are free."""
    own = free.get()
    command = [sys.executable, "-m", "benchmarks.catalogue.worker", name, *map(str, own)]
    try:
        out = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=seconds + IMPORTS)
    except subprocess.TimeoutExpired:
        return Outcome("SLOW", seconds, f"not done after {seconds:g} seconds")
    finally:
        free.put(own)
    lines = [line for line in out.stdout.splitlines() if line.startswith("{")]
    if not lines:
        said = (out.stderr.strip().splitlines() or ["nothing was said"])[-1]
        return Outcome("FAILED", 0.0, f"the process died: {said}")
    found = Outcome(**json.loads(lines[-1]))
    return found if found.seconds <= seconds else Outcome("SLOW", found.seconds, found.details)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[], help="names of programs; then no page is written")
    parser.add_argument("--page", action="store_true", help="write it all the same, with others as they were")
    parser.add_argument("--seconds", type=float, default=120.0, help="a run may take")
    parser.add_argument("--processes", type=int, default=1, help="programs at a time, each on two processors")
    options = parser.parse_args()
    if unknown := sorted(set(options.only) - set(entries())):
        raise SystemExit(f"no program is called {', '.join(unknown)}")
    chosen = {name: entry for name, entry in entries().items() if not options.only or name in options.only}
    processors, free = sorted(os.sched_getaffinity(0)), Queue[tuple[int, ...]]()
    for number in range(options.processes):
        own = [(PROCESSORS * number + i) % len(processors) for i in range(PROCESSORS)]
        free.put(tuple(processors[place] for place in dict.fromkeys(own)))
    outcomes: dict[str, Outcome] = {}
    with ThreadPoolExecutor(options.processes) as pool:
        found = pool.map(lambda name: outcome(name, options.seconds, free), chosen)
        for (name, entry), one in zip(chosen.items(), found, strict=True):
            outcomes[name] = one
            print(
                f"{name:<24}{entry.library:<9}{one.status:<9}{one.seconds:6.1f} s  {one.details}", flush=True
            )
    if options.page or not options.only:
        page.write(kinds(), {**page.read(), **outcomes} if options.only else outcomes)
    return int(any(one.status not in GOOD for one in outcomes.values()))


if __name__ == "__main__":
    sys.exit(main())
