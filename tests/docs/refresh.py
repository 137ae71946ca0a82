"""Run pages, and put what they print, and the pictures that they draw, in their places.

python -m tests.docs.refresh docs/tutorial.md     # or: all pages
"""

import contextlib
import shutil
import sys
import tempfile
import time
from pathlib import Path

import matplotlib

from tests.docs.pages import PAGES, ROOT, run


def refresh(page: Path) -> None:
    """Outputs are replaced from the last on, so that places stay right."""
    text = page.read_text()
    for block, printed in reversed(list(run(page, {}))):
        if block.span is not None:
            start, stop = block.span
            text = text[:start] + "".join(f"{line.rstrip()}\n" for line in printed.splitlines()) + text[stop:]
        elif printed:
            sys.exit(f"{page}:{block.line}: prints, and no block below shows it:\n{printed}")
    page.write_text(text)


if __name__ == "__main__":
    matplotlib.use("Agg")
    for page in [Path(name).resolve() for name in sys.argv[1:]] or PAGES:
        before = time.process_time()
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            refresh(page)
            for picture in Path(folder).glob("*.png"):
                shutil.copy(picture, ROOT / "docs" / "pictures")
        print(f"{page.relative_to(ROOT)}: {time.process_time() - before:.0f} s of CPU")
