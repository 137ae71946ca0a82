"""Where in the user's program something happened: file, line, and the text of the expression."""

import linecache
import os
import re
import sys
from dataclasses import dataclass
from types import FrameType

import jax
import numpyro

_LIBRARY_ROOTS = tuple(
    os.path.dirname(os.path.abspath(str(module.__file__))) + os.sep for module in (jax, numpyro)
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


def caller() -> Source:
    """The innermost frame that belongs to the user's program."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_library(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None:
        return Source("<unknown>", 0, "")
    return Source(os.path.basename(frame.f_code.co_filename), frame.f_lineno, _expression(frame))


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


def _is_library(filename: str) -> bool:
    return (
        filename.startswith(_LIBRARY_ROOTS)
        or filename.startswith(_OWN_ROOT)
        or os.path.basename(filename) in _PLUMBING
    )


def _expression(frame: FrameType) -> str:
    """Text of the expression under evaluation; the whole line where columns are unknown."""
    line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
    positions = list(frame.f_code.co_positions())[frame.f_lasti // 2]
    first, last, start, stop = positions
    if first is None or first != last or start is None or stop is None:
        return _KEYWORD.sub("", line.strip()).rstrip(":")
    # Columns count UTF-8 bytes.
    return line.encode()[start:stop].decode(errors="replace").strip()
