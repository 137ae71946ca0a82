"""What a driver does for each path, and what a second worker is worth: structures on a local Ray cluster.

The program chooses one of `--structures` chains of functions and one of `--variants` numbers that it starts
from, so each pair is a path and each chain a structure. Every number of workers is a fresh process with an
empty compilation cache and a cluster of its own, with one node for each worker. Seconds of the driver are of
its processor: all that it used, in the main thread while it looked for paths, in writing down what workers
trace and compile, and in handing jobs to workers and taking their results. Workers share the machine with
the driver and with each other.

    python -m benchmarks.cluster [--structures 1000] [--variants 10] [--workers 1 2] [--json FILE]
"""

import argparse
import dataclasses
import json
import logging
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path

from benchmarks.fresh import ROOT, with_cache

RUNS_PER_PATH = 8
HEADER = (
    f"{'workers':>7}{'paths':>8}{'structures':>11}{'functions':>10}{'jobs':>7}{'seconds':>9}{'driver':>8}"
    f"{'discovery':>10}{'writing':>8}{'calls':>7}{'MB':>7}   of the driver per path"
)


def row(found):
    """One line of the table."""
    parts = {name: found[name] for name in ("discovery", "writing", "calls")}
    parts["rest"] = found["driver"] - sum(parts.values())
    per_path = ", ".join(f"{name} {1e3 * value / found['paths']:.1f}" for name, value in parts.items())
    return (
        f"{found['workers']:>7}{found['paths']:>8,}{found['structures']:>11,}{found['functions']:>10,}"
        f"{found['jobs']:>7,}{found['seconds']:>9.1f}{found['driver']:>8.1f}{found['discovery']:>10.1f}"
        f"{found['writing']:>8.1f}{found['calls']:>7.1f}{found['peak_memory'] / 2**20:>7.0f}   {per_path} ms"
    )


def measure(structures, variants, workers):
    """What a process of its own tells of one run."""
    command = [sys.executable, "-m", "benchmarks.cluster", "--one", str(workers)]
    command += ["--structures", str(structures), "--variants", str(variants)]
    with tempfile.TemporaryDirectory(prefix="pathmix-benchmark-") as folder:
        out = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=with_cache(folder))
    out.check_returncode()
    return json.loads(out.stdout.splitlines()[-1])


class Clock:
    """Seconds of the processor that threads spend in some calls, and how many there were."""

    def __init__(self):
        self.times, self.seconds, self._lock = 0, 0.0, threading.Lock()

    def timed(self, function):
        def call(*args, **options):
            begun = time.thread_time()
            try:
                return function(*args, **options)
            finally:
                with self._lock:
                    self.times += 1
                    self.seconds += time.thread_time() - begun

        return call


class Timed:
    """An executor whose calls are timed."""

    def __init__(self, executor, calls):
        self._executor, self._calls = executor, calls

    @contextmanager
    def crew(self, engine):
        with self._executor.crew(engine) as crew:
            self.threads, self.compute = crew.threads, self._calls.timed(crew.compute)
            yield self


def one(structures, variants, workers):
    """A run on a cluster of that many nodes."""
    import ray
    from ray.cluster_utils import Cluster

    import pathmix
    from benchmarks.workloads import structures_and_variants
    from pathmix.discovery.contenders import Exploration
    from pathmix.engine import recipes, stablehlo

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    for _ in range(workers):
        cluster.add_node(num_cpus=1)
    ray.init(address=cluster.address, log_to_driver=False, logging_level=logging.ERROR)
    discovering, writing, calls = Clock(), Clock(), Clock()
    Exploration.__init__ = discovering.timed(Exploration.__init__)
    for how in (recipes, stablehlo):
        how.written = writing.timed(how.written)
    executor = Timed(pathmix.RayExecutor(workers), calls)
    paths = structures * variants
    discovery = pathmix.PriorDiscovery(RUNS_PER_PATH * paths, max_paths=paths)
    inference = pathmix.SDVI(
        structures_and_variants(structures, variants), discovery=discovery, executor=executor, progress=False
    )
    begun, busy = time.perf_counter(), time.process_time()
    posterior = inference.run(0, 0.5)
    seconds, driver = time.perf_counter() - begun, time.process_time() - busy
    print(
        json.dumps(
            {
                **dataclasses.asdict(posterior.timings),
                "workers": workers,
                "functions": writing.times,
                "jobs": calls.times,
                "seconds": seconds,
                "driver": driver,
                "discovery": discovering.seconds,
                "writing": writing.seconds,
                "calls": calls.seconds,
                "log_evidence": posterior.log_evidence,
            }
        )
    )
    ray.shutdown()
    cluster.shutdown()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--structures", type=int, default=1_000)
    parser.add_argument("--variants", type=int, default=10)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--json", type=Path, help="write all figures into this file")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one is not None:
        one(options.structures, options.variants, options.one)
        return
    print(HEADER, flush=True)
    measured = []
    for workers in options.workers:
        measured.append(measure(options.structures, options.variants, workers))
        print(row(measured[-1]), flush=True)
    first, last = measured[0], measured[-1]
    if len(measured) > 1:
        ratio = first["seconds"] / last["seconds"]
        print(f"{last['workers']} workers are {ratio:.2f} times as fast as {first['workers']}")
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(measured, indent=1))


if __name__ == "__main__":
    main()
