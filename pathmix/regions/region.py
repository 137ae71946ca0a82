"""What the conditions of a path say about its free sites (design, section 5).

Free: nothing is left to satisfy once discrete sites are pinned. Box: every remaining condition
bounds single elements of sites, and holds inside these bounds wherever it was tried. General:
anything else; membership is then checked draw by draw.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from pathmix.errors import ContinuousDecisionError, UnsupportedSiteError
from pathmix.program.slp import StraightLineProgram
from pathmix.regions.expressions import Expression, expressions
from pathmix.regions.intervals import EVERYTHING, Interval
from pathmix.regions.reading import read_bounds
from pathmix.regions.witnesses import Box, agreeing

# Discrete sites that decide nothing are pinned while they have at most this many values.
MAX_UNDECIDING_VALUES = 256


@dataclass(frozen=True)
class Region:
    """The set X_k on which a program follows a path: where the bounds and the live conditions hold."""

    kind: Literal["free", "box", "general"]
    bounds: dict[str, dict[int, Interval]]  # site -> position among its elements -> interval
    live: tuple[int, ...]  # conditions that must be checked draw by draw
    decided: dict[str, dict[int, Interval]]  # the boxes that decisions alone make, without the data


def read_region(slp: StraightLineProgram, draws: dict[str, np.ndarray], *, boxes: bool = True) -> Region:
    """The region of a path, given prior draws inside it; `boxes=False` leaves every condition to be checked.

    A condition whose box is wrong on the draws, or on points around them, stays live.
    """
    read_from = slp.graph.behind(slp.conditions)
    outputs = dict(
        zip(slp.conditions, expressions(read_from, [site.pinned for site in slp.sites]), strict=True)
    )
    decisions = [outputs[output] for output in slp.conditions[: len(slp.path.decisions)]]
    _check_decisions(slp, decisions)
    _check_discrete(slp, decisions)

    read = {output: _box(slp, outputs[output]) for output in slp.conditions if boxes}
    known = {output: box for output, box in read.items() if box is not None}
    sound = agreeing(slp, known, draws)
    found: Box = {}
    decided: Box = {}
    live = []
    for index, output in enumerate(slp.conditions):
        if not outputs[output].free:
            continue
        merged = _merge(slp, found, known[output]) if output in sound else None
        if merged is None:
            live.append(index)
        else:
            found = merged
        if index < len(decisions):
            decided = found
    kind = "general" if live else "box" if found else "free"
    return Region(kind, _by_site(slp, found), tuple(live), _by_site(slp, decided))


def _by_site(slp: StraightLineProgram, box: Box) -> dict[str, dict[int, Interval]]:
    named: dict[str, dict[int, Interval]] = {}
    for (site, position), interval in box.items():
        named.setdefault(slp.sites[site].name, {})[position] = interval
    return named


def _box(slp: StraightLineProgram, condition: Expression) -> Box | None:
    """What a condition says about single elements, if that is all it says and their supports are known."""
    bounds = read_bounds(condition) if condition.free else None
    if bounds is None or any(slp.sites[site].bounds is None for (site, _), _ in bounds):
        return None
    box: Box = {}
    for element, interval in bounds:
        box[element] = box.get(element, EVERYTHING) & interval
    return box


def _merge(slp: StraightLineProgram, found: Box, box: Box) -> Box | None:
    """Intersect with what is known; None if that leaves no volume."""
    merged = dict(found)
    for (site, position), interval in box.items():
        lower, upper = (
            float(np.broadcast_to(b, slp.sites[site].shape).ravel()[position])
            for b in slp.sites[site].bounds or ()
        )
        whole = Interval(lower, upper)
        narrowed = merged.get((site, position), whole) & interval
        if not narrowed.has_volume:
            return None
        if (narrowed.lower, narrowed.upper) != (whole.lower, whole.upper):
            merged[site, position] = narrowed
    return merged


def _check_decisions(slp: StraightLineProgram, conditions: list[Expression]) -> None:
    """A continuous value that became a Python number leaves a path with probability zero."""
    for decision, source, condition in zip(slp.path.decisions, slp.sources, conditions, strict=True):
        if condition.free and _is_float(decision.value):
            names = [slp.sites[i].name for i in sorted(condition.sites) if slp.sites[i].pinned is None]
            raise ContinuousDecisionError(
                f"{source}: `{source.text}` turns a continuous random value into a Python number; it "
                f"depends on {', '.join(map(repr, names))}. No two runs would share a path. Keep the "
                "value an array or tensor (instead of float(), .item(), math or np), or compare it."
            )


def _is_float(value: object) -> bool:
    if isinstance(value, tuple):
        return any(_is_float(item) for item in value)
    return isinstance(value, float)


def _check_discrete(slp: StraightLineProgram, conditions: list[Expression]) -> None:
    deciding = frozenset[int]().union(*(condition.sites for condition in conditions))
    for index, site in enumerate(slp.sites):
        decides = index in deciding or site.name in slp.looked_at
        if site.pinned is not None and not decides and _values(site) > MAX_UNDECIDING_VALUES:
            raise UnsupportedSiteError(
                f"The discrete site {site.name!r} at {site.source} decides no branch and has too many "
                f"values to enumerate (more than {MAX_UNDECIDING_VALUES}). Sum it out, for example with "
                "MixtureSameFamily for cluster assignments; or make it a branch, with int(...) around its "
                "draw, which is right where few of its values are likely."
            )


def _values(site: object) -> float:
    """How many values a discrete site can take."""
    bounds, size = getattr(site, "bounds"), int(np.prod(getattr(site, "shape")))
    if size == 0:
        return 1.0
    bounds = getattr(site, "bounds_here") if bounds is None else bounds
    if bounds is None:
        return np.inf
    lower, upper = (np.broadcast_to(b, (size,)) if np.ndim(b) == 0 else np.ravel(b) for b in bounds)
    return float(np.exp(np.sum(np.log(upper - lower + 1.0))))
