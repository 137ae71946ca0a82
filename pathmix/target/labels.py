"""Names for paths that a person can read: `num_clusters=4`, `-4 < u <= -3`, `not (a + b > 0)`."""

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np

from pathmix.program.slp import StraightLineProgram
from pathmix.regions.region import Region

ONLY_PATH = "always"


def label(slp: StraightLineProgram, region: Region) -> str:
    """What is peculiar to a path: its pinned values, its bounds, and its other decisions."""
    parts = [f"{name}={_shown(value)}" for name, value in slp.path.pinned]
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
