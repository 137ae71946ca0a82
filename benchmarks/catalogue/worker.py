"""One program in a process of its own: a line of JSON.

python -m benchmarks.catalogue.worker geometric
"""

import dataclasses
import json
import sys

from benchmarks.catalogue.outcome import tried
from benchmarks.catalogue.programs import entries


def main() -> None:
    print(json.dumps(dataclasses.asdict(tried(entries()[sys.argv[1]]))), flush=True)


if __name__ == "__main__":
    main()
