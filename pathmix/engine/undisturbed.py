"""Libraries that set variables and warning filters when they are loaded, without that."""

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def undisturbed() -> Iterator[None]:
    """The environment variables and warning filters of the process are afterwards as they were."""
    before = dict(os.environ)
    with warnings.catch_warnings():
        yield
    for name in {*before, *os.environ}:
        if name not in before:
            del os.environ[name]
        elif os.environ.get(name) != before[name]:
            os.environ[name] = before[name]
