"""`python -m pathmix`: the command line."""

import sys

from pathmix.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
