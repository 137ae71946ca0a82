"""Where a driver becomes the bottleneck: a simulation of clusters that are not at hand.

The driver does one thing at a time: it runs the program (`discovery`, for each path), writes down what is new
(`writing`, for each structure), hands out jobs and takes results (`call`), and has a `rest` for each path.
Workers trace and compile a structure once each, and compute. Phases of successive halving share the work
equally and wait for their last job. Costs are what `benchmarks.cluster` measured, unless others are given.

    python -m benchmarks.simulated [--paths 10000] [--structures 1000] [--work 0.1 1 10]
"""

import argparse
import heapq
import math
from dataclasses import dataclass

WORKERS = (1, 2, 10, 100, 1_000)
KEPT = 10  # paths, by the last phase of successive halving
# As in pathmix: at most so many paths in a job, jobs for each worker, and cohorts for each of these.
BATCH, AHEAD, COHORTS_EACH = 8, 2, 4


@dataclass(frozen=True)
class Costs:
    """Seconds."""

    discovery: float
    writing: float
    call: float
    rest: float
    compiling: float
    work: float  # for each path, on average, in training and evidences
    job: float  # the longest a job takes, for each of its paths


@dataclass(frozen=True)
class Simulated:
    seconds: float
    driver: float  # share of the time that it was at work
    workers: float  # the same, of all of them


class Cluster:
    """A driver and its workers, each with the time at which it is free."""

    def __init__(self, workers, costs):
        self.costs, self.free = costs, [(0.0, number) for number in range(workers)]
        self.known = [set() for _ in range(workers)]
        self.clock = self.busy = self.worked = self.last = 0.0

    def drive(self, seconds):
        self.clock += seconds
        self.busy += seconds

    def compute(self, structure, seconds, after=0.0):
        """On the worker that is free first; of those that are free by now, one that knows the structure."""
        self.drive(self.costs.call)
        idle = [entry for entry in self.free if entry[0] <= self.clock and structure in self.known[entry[1]]]
        chosen = min(idle, default=self.free[0])
        self.free.remove(chosen)
        free, number = chosen
        if structure not in self.known[number]:
            self.known[number].add(structure)
            seconds += self.costs.compiling
        end = max(free, self.clock, after) + seconds
        self.worked += seconds
        self.last = max(self.last, end)
        heapq.heapify(self.free)
        heapq.heappush(self.free, (end, number))
        return end

    def wait(self):
        self.clock = max(self.clock, self.last)


def simulate(workers, paths, structures, costs):
    cluster = Cluster(workers, costs)
    each = paths // structures
    for structure in range(structures):
        cluster.drive(each * costs.discovery + costs.writing)
        cluster.compute(structure, 0.0)
    phases = 1 + max(0, math.ceil(math.log2(paths / KEPT)))
    for phase in range(phases):
        cluster.wait()
        active = max(paths >> phase, min(KEPT, paths))
        of_one = -(-min(each, active) // (AHEAD * workers))
        size = min(BATCH, max(of_one, -(-active // (COHORTS_EACH * AHEAD * workers))))
        cohorts = -(-active // size)
        left = paths * costs.work / phases / cohorts
        jobs, done = max(1, math.ceil(left / (costs.job * size))), [0.0] * cohorts
        for _ in range(jobs):  # of a cohort one after the other
            for cohort in range(cohorts):
                done[cohort] = cluster.compute(cohort % structures, left / jobs, after=done[cohort])
    cluster.wait()
    cluster.drive(paths * costs.rest)
    return Simulated(cluster.clock, cluster.busy / cluster.clock, cluster.worked / cluster.clock / workers)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--paths", type=int, default=10_000)
    parser.add_argument("--structures", type=int, default=1_000)
    parser.add_argument("--work", type=float, nargs="+", default=[0.1, 1.0, 10.0])
    for name, value in (
        ("discovery", 0.015),
        ("writing", 0.012),
        ("call", 0.0016),
        ("rest", 0.035),
        ("compiling", 0.8),
        ("job", 1.0),
    ):
        parser.add_argument(f"--{name}", type=float, default=value)
    given = vars(parser.parse_args())
    paths, structures, works = (given.pop(name) for name in ("paths", "structures", "work"))
    print(f"{'work a path':>12}{'workers':>9}{'seconds':>10}{'speed-up':>10}{'driver':>8}{'workers':>9}")
    for work in works:
        alone = None
        for workers in WORKERS:
            found = simulate(workers, paths, structures, Costs(work=work, **given))
            alone = alone or found.seconds
            print(
                f"{work:>10.1f} s{workers:>9,}{found.seconds:>10,.0f}{alone / found.seconds:>10.1f}"
                f"{found.driver:>8.0%}{found.workers:>9.0%}"
            )


if __name__ == "__main__":
    main()
