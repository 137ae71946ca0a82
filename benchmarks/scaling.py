"""What programs with many paths cost, in seconds and in memory.

Every workload runs in a fresh process: cold, with an empty compilation cache, and warm, in one more process
that finds what the first one compiled. Seconds are of `SDVI.run`; imports do not count. Memory is the peak of
the process, imports included. Sizes are predictors, paths, paths, coins, prior runs and prior runs. In the
end, the largest of each workload is compared with the smallest: `one-structure` tells what a further path of
a known structure takes, `many-structures` what a new structure does.

    python -m benchmarks.scaling [--quick] [--only selection discrete] [--json FILE]
"""

import argparse
import json
import os
import platform
from importlib.metadata import version
from pathlib import Path

from benchmarks.fresh import cold_and_warm

SIZES = {
    "selection": (3, 5, 7, 8, 10),
    "one-structure": (10, 100, 1_000),
    "many-structures": (100, 1_000, 5_000),
    "discrete": (3, 6),
    "gaussian-process": (300,),
    "mixture": (1_000,),
}
QUICK = {
    "selection": (2, 4),
    "one-structure": (10, 40),
    "many-structures": (4, 16),
    "discrete": (2, 5),
    "gaussian-process": (10,),
    "mixture": (10,),
}
HEADER = (
    f"{'workload':<17}{'size':>6} {'cache':<5}{'paths':>6}{'structures':>11}{'executables':>12}"
    f"{'seconds':>9}{'discovery':>10}{'initialise':>11}{'train':>7}{'evaluate':>9}{'trace':>7}{'compile':>8}{'MB':>7}"
)
MB = 2**20


def row(found):
    """One line of the table."""
    name = f"{found['workload']:<17}{found['size']:>6,} {found['cache']:<5}"
    if "failure" in found:
        return f"{name} {found['failure']}"
    return (
        f"{name}{found['paths']:>6,}{found['structures']:>11,}{found['executables']:>12,}"
        f"{found['seconds']:>9.1f}{found['discovery']:>10.1f}{found['initialisation']:>11.1f}"
        f"{found['training']:>7.1f}{found['evaluation']:>9.1f}{found['tracing']:>7.1f}"
        f"{found['compiling']:>8.1f}{found['peak_memory'] / MB:>7.0f}"
    )


def ratios(measured):
    """How the largest of each workload compares with the smallest, and what a further path takes."""
    told = {}
    for workload in SIZES:
        for cache in ("cold", "warm"):
            found = [
                one
                for one in measured
                if one["workload"] == workload and one["cache"] == cache and "failure" not in one
            ]
            if len(found) < 2:
                continue
            small, large = found[0], found[-1]
            more = large["paths"] - small["paths"]
            told[f"{workload}, {cache}"] = {
                "sizes": (small["size"], large["size"]),
                "times_the_seconds": large["seconds"] / small["seconds"],
                "seconds_per_further_path": (large["seconds"] - small["seconds"]) / more,
                "bytes_per_further_path": (large["peak_memory"] - small["peak_memory"]) / more,
            }
    return told


def tell(name, ratio):
    small, large = ratio["sizes"]
    return (
        f"{name}: size {large:,} takes {ratio['times_the_seconds']:.1f} times as long as {small:,}; "
        f"a further path takes {1e3 * ratio['seconds_per_further_path']:.1f} ms and "
        f"{ratio['bytes_per_further_path'] / MB:.2f} MB"
    )


def machine():
    libraries = {name: version(name) for name in ("pathmix", "jax", "jaxlib", "numpyro", "torch")}
    return {"cores": os.cpu_count(), "platform": platform.platform(), **libraries}


def write(file, figures):
    """Called after every measurement: whoever ends a long run keeps what it has."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"machine": machine(), **figures}, indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=SIZES, default=list(SIZES), help="these workloads")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it works")
    parser.add_argument("--json", type=Path, help="write all figures into this file")
    options = parser.parse_args()
    sizes = QUICK if options.quick else SIZES
    measured = []
    print(HEADER, flush=True)
    for workload in options.only:
        for size in sizes[workload]:
            for found in cold_and_warm(workload, size):
                measured.append(found)
                print(row(found), flush=True)
                if options.json:
                    write(options.json, {"measured": measured, "ratios": ratios(measured)})
    for name, ratio in ratios(measured).items():
        print(tell(name, ratio))


if __name__ == "__main__":
    main()
