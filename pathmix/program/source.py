"""Where in the user's program something happened: file, line, and the text of the expression."""

import linecache
import os
import re
import sys
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.util import find_spec
from types import CodeType, FrameType
from typing import Any

_LIBRARIES = ("jax", "numpyro", "torch", "pyro")
_LIBRARY_ROOTS = tuple(
    os.path.dirname(os.path.abspath(str(spec.origin))) + os.sep for spec in map(find_spec, _LIBRARIES) if spec
)
_OWN_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_KEYWORD = re.compile(r"^(if|elif|while|assert|return|not)\b\s*")
_PLUMBING = ("contextlib.py", "functools.py")


@dataclass(frozen=True)
class Source:
    """A place in the user's program."""

    file: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class Place:
    """A source before its text is looked up, which takes a while."""

    code: CodeType | None
    line: int
    instruction: int

    def source(self) -> Source:
        if self.code is None:
            return Source("<unknown>", 0, "")
        return Source(os.path.basename(self.code.co_filename), self.line, _expression(self))

    def __reduce__(self) -> tuple[Any, ...]:
        """Code does not travel."""
        return FarPlace, (None, self.line, 0, self.source())


@dataclass(frozen=True)
class FarPlace(Place):
    """A place in a run that another process made."""

    told: Source

    def source(self) -> Source:
        return self.told


def calling_place() -> Place:
    """The innermost frame that belongs to the user's program."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_library(frame.f_code.co_filename):
        frame = frame.f_back
    return Place(None, 0, 0) if frame is None else Place(frame.f_code, frame.f_lineno, frame.f_lasti)


def caller() -> Source:
    """Where in the user's program we are."""
    return calling_place().source()


def raised_at(error: BaseException) -> Source:
    """The innermost place in the user's program that an error passed through."""
    found = Source("<unknown>", 0, "")
    traceback = error.__traceback__
    while traceback is not None:
        frame = traceback.tb_frame
        if not _is_library(frame.f_code.co_filename):
            found = Source(os.path.basename(frame.f_code.co_filename), traceback.tb_lineno, "")
        traceback = traceback.tb_next
    return found


@cache
def _is_library(filename: str) -> bool:
    return (
        filename.startswith(_LIBRARY_ROOTS)
        or filename.startswith(_OWN_ROOT)
        or os.path.basename(filename) in _PLUMBING
    )


@lru_cache(4_096)
def _expression(place: Place) -> str:
    """Text of the expression under evaluation; the whole line where columns are unknown."""
    assert place.code is not None
    line = linecache.getline(place.code.co_filename, place.line)
    positions = list(place.code.co_positions())[place.instruction // 2]
    first, last, start, stop = positions
    if first is None or first != last or start is None or stop is None:
        return _KEYWORD.sub("", line.strip()).rstrip(":")
    # Columns count UTF-8 bytes.
    return line.encode()[start:stop].decode(errors="replace").strip()
