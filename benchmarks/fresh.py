"""One workload in a process of its own: seconds without imports, and the process's peak memory.

The kernel counts a parent's memory towards the peak of its children, so nothing large is imported here.

    python -m benchmarks.fresh selection 3
"""

import argparse
import dataclasses
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]


def cold_and_warm(workload, size):
    """Measured with nothing compiled before, and again by another process that finds what this one left."""
    with tempfile.TemporaryDirectory(prefix="pathmix-benchmark-") as folder:
        for cache in ("cold", "warm"):
            yield {"workload": workload, "size": size, "cache": cache, **measure(workload, size, folder)}


def measure(workload, size, cache_folder):
    """What the process tells, or how it failed."""
    command = [sys.executable, "-m", "benchmarks.fresh", workload, str(size)]
    begun = time.perf_counter()
    out = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=with_cache(cache_folder))
    if out.returncode == 0:
        return json.loads(out.stdout.splitlines()[-1])
    said = out.stderr.strip().splitlines() or ["it said nothing"]
    failure = f"died after {time.perf_counter() - begun:.0f} s (status {out.returncode}): {said[-1]}"
    return {"failure": failure}


def with_cache(folder):
    """The environment, with what pathmix compiles kept in the folder and nowhere else."""
    # JAX's own cache, where one is set, would go before ours.
    inherited = {name: value for name, value in os.environ.items() if name != "JAX_COMPILATION_CACHE_DIR"}
    return {**inherited, "PATHMIX_CACHE": str(folder)}


def main():
    from benchmarks.workloads import WORKLOADS

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("workload", choices=WORKLOADS)
    parser.add_argument("size", type=int)
    options = parser.parse_args()
    job = WORKLOADS[options.workload](options.size)
    begun = time.perf_counter()
    posterior = job.inference.run(0, *job.args)
    seconds = time.perf_counter() - begun
    print(json.dumps({"seconds": seconds, "elbo": posterior.elbo, **dataclasses.asdict(posterior.timings)}))


if __name__ == "__main__":
    main()
