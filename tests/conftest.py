"""Tests named in slow.txt belong to `make trust`; a quicker case of most of them stays in `make test`."""

import os
import tempfile
from pathlib import Path

import pytest

from pathmix.engine.precision import engine_scope

# What tests compile they share with each other, and with nobody else.
os.environ["PATHMIX_CACHE"] = str(Path(tempfile.gettempdir()) / f"pathmix-tests-{os.getppid()}")
SLOW = frozenset((Path(__file__).parent / "slow.txt").read_text().splitlines())


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    found = {item.nodeid for item in items}
    files = {nodeid.partition("::")[0] for nodeid in found}
    gone = sorted(name for name in SLOW - found if name.partition("::")[0] in files)
    if gone and not any("::" in argument for argument in config.args):
        raise pytest.UsageError(f"slow.txt names tests that are not there: {', '.join(gone)}")
    for item in items:
        if item.nodeid in SLOW:
            item.add_marker(pytest.mark.trust)


@pytest.fixture
def engine():
    """Double precision and one BLAS thread, as inside a run."""
    with engine_scope("float64"):
        yield
