"""How cost grows with the number of paths, with the rows of data and with the coordinates of a path.

Paths are of one structure, with the default budget; rows and coordinates are of a regression that has one
path, with 10,000 iterations. Every point is a fresh process with an empty compilation cache.

    python -m benchmarks.growth [--quick] [--only rows] [--json FILE] [--plot FILE.png]
"""

import argparse
import tempfile
from pathlib import Path

from benchmarks.fresh import measure
from benchmarks.scaling import HEADER, row, write

SIZES = {
    "one-structure": (10, 100, 1_000, 10_000),
    "rows": (100, 1_000, 10_000, 100_000),
    "coordinates": (1, 10, 100, 1_000),
}
QUICK = {"one-structure": (4, 16, 64), "rows": (100, 1_000), "coordinates": (1, 10, 100)}
AXES = {
    "one-structure": "paths of one structure",
    "rows": "rows of data, 10 coordinates",
    "coordinates": "coordinates of one path, 100 rows",
}
STAGES = ("seconds", "discovery", "initialisation", "training", "evaluation")


def picture(measured):
    import matplotlib.pyplot as plt

    shown = [workload for workload in SIZES if any(one["workload"] == workload for one in measured)]
    figure, axes = plt.subplots(
        1, len(shown), figsize=(4.2 * len(shown), 4.2), layout="constrained", squeeze=False, sharey=True
    )
    for axis, workload in zip(axes[0], shown, strict=True):
        found = [one for one in measured if one["workload"] == workload]
        sizes = [one["size"] for one in found]
        for number, stage in enumerate(STAGES):
            axis.plot(
                sizes,
                [one[stage] for one in found],
                "o-",
                color="black" if stage == "seconds" else f"C{number - 1}",
                linewidth=2 if stage == "seconds" else 1,
                markersize=4,
                label="end to end" if stage == "seconds" else stage,
            )
        axis.set(xscale="log", yscale="log", xlabel=AXES[workload])
        axis.set_xticks(sizes, [f"{size:,}" for size in sizes])
        axis.set_xticks([], minor=True)
        axis.grid(which="major", alpha=0.3)
    axes[0, 0].set_ylabel("seconds, nothing compiled before")
    axes[0, 0].legend(frameon=False, fontsize=9)
    return figure


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=SIZES, default=list(SIZES), help="these workloads")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it works")
    parser.add_argument("--json", type=Path, help="write all figures into this file")
    parser.add_argument("--plot", type=Path, help="draw a picture into this file")
    options = parser.parse_args()
    sizes = QUICK if options.quick else SIZES
    measured = []
    print(HEADER, flush=True)
    for workload in options.only:
        for size in sizes[workload]:
            with tempfile.TemporaryDirectory(prefix="pathmix-benchmark-") as folder:
                found = {"workload": workload, "size": size, "cache": "cold"}
                measured.append(found | measure(workload, size, folder))
            print(row(measured[-1]), flush=True)
            if options.json:
                write(options.json, {"measured": measured})
    if options.plot:
        picture([one for one in measured if "failure" not in one]).savefig(options.plot, dpi=150)


if __name__ == "__main__":
    main()
