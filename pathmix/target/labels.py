"""Names for paths that a person can read: `num_clusters=4`, `-4 < u <= -3`, `not (a + b > 0)`."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from pathmix.errors import OptionError
from pathmix.program.slp import Site, StraightLineProgram
from pathmix.regions.region import Region
from pathmix.target.nested import nested

ONLY_PATH = "always"
_NUMBERED = re.compile(r"(.*?)(\d+)=([^\s,]+)")
_MOST = 60  # letters of a label in a table, or in a sentence


class Named(NamedTuple):
    """A path for which a name is wanted."""

    addresses: tuple[str, ...]  # of all latent sites
    pinned: dict[str, Any]  # the values of discrete ones
    text: str  # what it is called if nobody knows better


Label = Callable[[Named], str]


def named(slp: StraightLineProgram, region: Region, wanted: Label | None) -> str:
    """As the user wants it, who may know the notation of the program; on one line, for tables."""
    text = " ".join(label(slp, region).split())
    if wanted is None:
        return text
    try:
        return " ".join(str(wanted(Named(slp.path.addresses, dict(slp.path.pinned), text))).split())
    except Exception as error:
        raise OptionError(
            f"label= failed for the path {text!r}: {type(error).__name__}: {error}. It gets `addresses`, "
            "`pinned` (the values of discrete sites, by name) and `text`, and gives a string."
        ) from error


def label(slp: StraightLineProgram, region: Region) -> str:
    """What is peculiar to a path: its pinned values, its bounds, and its other decisions."""
    tree = nested(slp.path.pinned, shown)
    inside, expression = (set[str](), []) if tree is None else (tree[0], [tree[1]])
    parts = [assignment(name, value) for name, value in slp.path.pinned if name not in inside] + expression
    for site in slp.free:
        for position, interval in sorted(region.decided.get(site.name, {}).items()):
            parts.append(interval.describe(element_name(site, position)))
    said = [decision_text(slp, i) for i in region.live if i < len(slp.path.decisions)]
    for text, repeats in groupby(said):
        count = len(list(repeats))
        parts.append(f"{text} ({count} times)" if count > 1 else text)
    return ", ".join(parts) or ONLY_PATH


def unique(labels: Sequence[str]) -> list[str]:
    """Number the labels that occur more than once."""
    total, seen = Counter(labels), Counter[str]()
    taken, result = set(labels), []
    for text in labels:
        name = text
        while total[text] > 1 and name in taken:  # somebody may have numbered them already
            seen[text] += 1
            name = f"{text} #{seen[text]}"
        taken.add(name)
        result.append(name)
    return result


def shortened(text: str, most: int = _MOST) -> str:
    """With running numbers taken together (`on_0..7=10100100`), if it is long, and cut in the middle.

    >>> shortened("k=2, on_0=1, on_1=0, on_2=1, on_3=1", most=20)
    'k=2, on_0..3=1011'
    """
    if len(text) <= most:
        return text
    text = ", ".join(_taken_together(text.split(", ")))
    if len(text) <= most:
        return text
    half = (most - 5) // 2
    return f"{text[:half]} ... {text[-half:]}"


def _taken_together(parts: Sequence[str]) -> Iterator[str]:
    """Assignments to sites whose names differ by a running number, as one."""
    numbered = [_NUMBERED.fullmatch(part) for part in parts]
    runs = [(match[1], int(match[2]) - place) if match else place for place, match in enumerate(numbered)]
    for _, places in groupby(range(len(parts)), key=lambda place: runs[place]):
        own = list(places)
        matches = [match for place in own if (match := numbered[place])]
        if len(matches) < 3:
            yield from (parts[place] for place in own)
            continue
        values = [match[3] for match in matches]
        joined = ("" if all(len(value) == 1 for value in values) else ",").join(values)
        yield f"{matches[0][1]}{matches[0][2]}..{matches[-1][2]}={joined}"


def decision_text(slp: StraightLineProgram, index: int, *, turned: bool = False) -> str:
    """How a decision came out; `turned`, how a yes or no did not, and what else is looked at."""
    decision, source = slp.path.decisions[index], slp.sources[index]
    text = source.text or str(source)
    if decision.kind == "bool":
        return text if bool(decision.value) != turned else f"not ({text})"
    return text if turned else f"{text} = {shown(decision.value)}"


def assignment(name: str, value: Any) -> str:
    """The value of a discrete site: `k=2`."""
    return f"{name}={shown(value)}"


def element_name(site: Site, position: int) -> str:
    """One number of a site: `u`, `w[2]`."""
    index = ",".join(map(str, np.unravel_index(position, site.shape)))
    return f"{site.name}[{index}]" if site.shape else site.name


def shown(value: Any) -> str:
    """The value of a discrete site, as it is in labels."""
    if isinstance(value, tuple):
        return "(" + ", ".join(map(shown, value)) + ")"
    return f"{value:g}" if isinstance(value, float) else str(value)
