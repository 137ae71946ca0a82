"""One program in a process of its own, on some processors: a line of JSON.

python -m benchmarks.catalogue.worker geometric 0 1
"""

import dataclasses
import json
import os
import sys


def main() -> None:
    if processors := set(map(int, sys.argv[2:])):
        os.sched_setaffinity(0, processors)
    # What these import counts the processors.
    from benchmarks.catalogue.outcome import tried
    from benchmarks.catalogue.programs import entries

    print(json.dumps(dataclasses.asdict(tried(entries()[sys.argv[1]]))), flush=True)


if __name__ == "__main__":
    main()
