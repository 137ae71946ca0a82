"""How a run goes, on the standard error: a table that is drawn in place in a terminal, lines elsewhere."""

import logging
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from pathmix.cli.live import Live
from pathmix.engine.progress import Progress


@contextmanager
def shown(*, quiet: bool) -> Iterator[bool | Progress]:
    """What to give as `progress=` to a method."""
    if quiet:
        yield False
    elif sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
        with Live(sys.stderr) as live:
            yield live
    else:
        with _lines():
            yield False


@contextmanager
def _lines() -> Iterator[None]:
    """The log of the package, with the seconds since now."""
    logger, handler, begun = logging.getLogger("pathmix"), logging.StreamHandler(sys.stderr), time.time()

    def timed(record: logging.LogRecord) -> str:
        return f"{record.created - begun:6.1f} s  {record.getMessage()}"

    handler.format = timed
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.setLevel(before)
        logger.removeHandler(handler)
