"""Whether a page shows what its code prints.

Words and whole numbers are the same. Other numbers differ between machines, for rounding changes which
random numbers an algorithm comes to use: a number with an error (`0.85 ± 0.02`) is within four errors, others
are within 2% or 0.02, and one in the last digit. Steps of training and k-hats of tables may be any.
"""

import math
import re

_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?|inf|nan)(?!\w)")
_ROW = re.compile(r"(\s-?\d+\.\d\d)?\s+[\d,]+(\s+[a-zA-Z][a-zA-Z ]*)$")  # k-hat, steps and status
_RULE = re.compile(r"^[-\s]+$", re.MULTILINE)
_ERRORS, _SHARE, _LITTLE = 4.0, 0.02, 0.02


def disagreement(shown: str, printed: str) -> str | None:
    """What is different, in a sentence; None if nothing is."""
    ours, theirs = _lines(shown), _lines(printed)
    if len(ours) != len(theirs):
        return f"the page shows {len(ours)} lines, and the code prints {len(theirs)}:\n{printed}"
    for one, other in zip(ours, theirs, strict=True):
        if _NUMBER.sub("#", one).split() != _NUMBER.sub("#", other).split() or not _close(one, other):
            return f"the page shows\n{one}\nand the code prints\n{other}"
    return None


def _lines(text: str) -> list[str]:
    return [_ROW.sub(r"\2", line) for line in _RULE.sub("", text).splitlines() if line.strip()]


def _close(one: str, other: str) -> bool:
    ours, theirs = list(_NUMBER.finditer(one)), list(_NUMBER.finditer(other))
    for place, (mine, its) in enumerate(zip(ours, theirs, strict=True)):
        if one[: mine.start()].endswith("± "):
            continue
        if mine[0].lstrip("+-").replace(",", "").isdigit() and its[0].lstrip("+-").replace(",", "").isdigit():
            if mine[0] != its[0]:
                return False
            continue
        if mine[0] == its[0]:  # the same are those without end, too
            continue
        room = max(_LITTLE, _SHARE * abs(_number(mine[0])))
        if one[mine.end() :].startswith(" ± "):
            room = _ERRORS * math.hypot(_number(ours[place + 1][0]), _number(theirs[place + 1][0]))
        digit = 10.0 ** -len(mine[0].partition(".")[2])
        gap = abs(_number(mine[0]) - _number(its[0]))
        if not (math.isfinite(gap) and gap <= room + 1.01 * digit):
            return False
    return True


def _number(text: str) -> float:
    return float(text.replace(",", ""))
