"""Pages as programs: Python blocks that run one after the other, and blocks that show what they print."""

import contextlib
import io
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").glob("**/*.md"))
README = ROOT / "README.md"

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A Python block, and the output below it, if the page shows one."""

    code: str
    line: int  # of the page, before the code
    shown: str | None
    span: tuple[int, int] | None  # where the output is in the text of the page


def blocks(text: str) -> Iterator[Block]:
    """Output is a block without a language, or of `text`, with nothing but blank lines before it."""
    fences = list(_FENCE.finditer(text))
    for fence, following in zip_longest(fences, fences[1:]):
        if fence[1] != "python":
            continue
        line, shown, span = text[: fence.start(2)].count("\n"), None, None
        if following and following[1] in ("", "text") and not text[fence.end() : following.start()].strip():
            shown, span = following[2], following.span(2)
        yield Block(fence[2], line, shown, span)


def execute(page: Path, block: Block, names: dict[str, Any]) -> str:
    """What a block prints, run in a namespace."""
    # Blank lines first, so that errors name the line of the page.
    code = compile("\n" * block.line + block.code, os.path.relpath(page, ROOT), "exec")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, names)
    return printed.getvalue()


def run(page: Path, names: dict[str, Any]) -> Iterator[tuple[Block, str]]:
    """Execute the blocks of a page in one namespace; yields each with what it printed."""
    for block in blocks(page.read_text()):
        yield block, execute(page, block, names)
