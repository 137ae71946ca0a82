"""Names for paths that a person can read: `num_clusters=4`, `-4 < u <= -3`, `not (a + b > 0)`."""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from pathmix.errors import OptionError
from pathmix.program.slp import StraightLineProgram
from pathmix.regions.region import Region
from pathmix.target.nested import nested

ONLY_PATH = "always"
_MOST = 60  # letters of a label in a table, or in a sentence


class Named(NamedTuple):
    """A path for which a name is wanted."""

    addresses: tuple[str, ...]  # of all latent sites
    pinned: dict[str, Any]  # the values of discrete ones
    text: str  # what it is called if nobody knows better


Label = Callable[[Named], str]


def named(slp: StraightLineProgram, region: Region, wanted: Label | None) -> str:
    """As the user wants it, who may know the notation of the program."""
    text = label(slp, region)
    if wanted is None:
        return text
    try:
        return str(wanted(Named(slp.path.addresses, dict(slp.path.pinned), text)))
    except Exception as error:
        raise OptionError(
            f"label= failed for the path {text!r}: {type(error).__name__}: {error}. It gets `addresses`, "
            "`pinned` (the values of discrete sites, by name) and `text`, and gives a string."
        ) from error


def label(slp: StraightLineProgram, region: Region) -> str:
    """What is peculiar to a path: its pinned values, its bounds, and its other decisions."""
    tree = nested(slp.path.pinned, _shown)
    inside, expression = (set[str](), []) if tree is None else (tree[0], [tree[1]])
    parts = [f"{name}={_shown(value)}" for name, value in slp.path.pinned if name not in inside] + expression
    for site in slp.free:
        for position, interval in sorted(region.decided.get(site.name, {}).items()):
            index = ",".join(map(str, np.unravel_index(position, site.shape)))
            parts.append(interval.describe(f"{site.name}[{index}]" if site.shape else site.name))
    said = [_decision(slp, i) for i in region.live if i < len(slp.path.decisions)]
    for text, repeats in groupby(said):
        count = len(list(repeats))
        parts.append(f"{text} ({count} times)" if count > 1 else text)
    return ", ".join(parts) or ONLY_PATH


def unique(labels: Sequence[str]) -> list[str]:
    """Number the labels that occur more than once."""
    total, seen = Counter(labels), Counter[str]()
    result = []
    for text in labels:
        seen[text] += 1
        result.append(f"{text} #{seen[text]}" if total[text] > 1 else text)
    return result


def shortened(text: str, most: int = _MOST) -> str:
    """Cut in the middle: long labels differ at their ends."""
    if len(text) <= most:
        return text
    half = (most - 5) // 2
    return f"{text[:half]} ... {text[-half:]}"


def _decision(slp: StraightLineProgram, index: int) -> str:
    decision, source = slp.path.decisions[index], slp.sources[index]
    text = source.text or str(source)
    if decision.kind == "bool":
        return text if decision.value else f"not ({text})"
    return f"{text} = {_shown(decision.value)}"


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return "(" + ", ".join(map(_shown, value)) + ")"
    return f"{value:g}" if isinstance(value, float) else str(value)
