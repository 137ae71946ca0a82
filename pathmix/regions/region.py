"""What the conditions of a path say about its free sites (design, section 5).

Free: nothing is left to satisfy once discrete sites are pinned. Box: every remaining condition
bounds single elements of sites, and holds inside these bounds wherever it was tried. General:
anything else; membership is then checked draw by draw.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from pathmix.errors import ContinuousDecisionError, UnsupportedSiteError
from pathmix.program.slp import Site, StraightLineProgram
from pathmix.regions.expressions import Expression, expressions
from pathmix.regions.intervals import EVERYTHING, Interval
from pathmix.regions.reading import read_bounds
from pathmix.regions.witnesses import Box, agreeing
from pathmix.summation.summing import MAX_UNDECIDING_VALUES


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
    conditions = read_conditions(slp, draws)
    found: Box = {}
    decided: Box = {}
    live = []
    for index, condition in enumerate(conditions):
        if not condition.is_free:
            continue
        merged = merge(slp, found, condition.box) if boxes and condition.box is not None else None
        if merged is None:
            live.append(index)
        else:
            found = merged
        if index < len(slp.path.decisions):
            decided = found
    kind = "general" if live else "box" if found else "free"
    return Region(kind, _by_site(slp, found), tuple(live), _by_site(slp, decided))


class Condition(NamedTuple):
    """One condition of a path, and the box that it says exactly, if there is one."""

    is_free: bool  # pinned sites do not settle it
    box: Box | None


# Discovery and methods ask for the same.
_read: WeakKeyDictionary[StraightLineProgram, tuple[Condition, ...]] = WeakKeyDictionary()


def read_conditions(slp: StraightLineProgram, draws: dict[str, np.ndarray]) -> tuple[Condition, ...]:
    """What each condition of a path says, tried on prior draws inside its region."""
    if slp not in _read:
        conditions = condition_expressions(slp)
        decisions = conditions[: len(slp.path.decisions)]
        _check_decisions(slp, decisions)
        _check_discrete(slp, decisions)
        read = zip(slp.conditions, (read_box(slp, condition) for condition in conditions), strict=True)
        known = {output: box for output, box in read if box is not None}
        sound = agreeing(slp, known, draws)
        boxes = (known[output] if output in sound else None for output in slp.conditions)
        _read[slp] = tuple(Condition(c.free, box) for c, box in zip(conditions, boxes, strict=True))
    return _read[slp]


def condition_expressions(slp: StraightLineProgram) -> list[Expression]:
    """The conditions of a path, over the values of its sites."""
    return expressions(slp.graph.behind(slp.conditions), slp.known)


def _by_site(slp: StraightLineProgram, box: Box) -> dict[str, dict[int, Interval]]:
    named: dict[str, dict[int, Interval]] = {}
    for (site, position), interval in box.items():
        named.setdefault(slp.sites[site].name, {})[position] = interval
    return named


def read_box(slp: StraightLineProgram, condition: Expression, wanted: bool = True) -> Box | None:
    """What a condition that is `wanted` says about single elements.

    None if that is not all it says, or a support is not known.
    """
    bounds = read_bounds(condition, wanted) if condition.free else None
    if bounds is None or any(slp.sites[site].bounds is None for (site, _), _ in bounds):
        return None
    box: Box = {}
    for element, interval in bounds:
        box[element] = box.get(element, EVERYTHING) & interval
    return box


def merge(slp: StraightLineProgram, found: Box, box: Box) -> Box | None:
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
                f"The discrete site {site.name!r} at {site.source} decides no branch, {_why_not(slp, site)}"
            )


def _why_not(slp: StraightLineProgram, site: Site) -> str:
    """Why a site can neither be summed out nor each of its values be a path, and what to do."""
    bounds = site.bounds or site.bounds_here
    why = dict(slp.unsummed).get(site.name)
    if why is None and (bounds is None or not np.all(np.isfinite(bounds[0]))):
        return (
            "and its values are vectors whose elements depend on each other (one-hot vectors, counts that "
            "add up): these are neither listed nor summed out. Instead of one-hot vectors, draw whole "
            "numbers with Categorical and look up rows with them, as in `table[z]`; or decide on "
            "its elements in Python (`if z[0] == 1:`), which makes each value a path."
        )
    return (
        f"has too many values to enumerate (more than {MAX_UNDECIDING_VALUES}), and could not be summed out"
        + (f": {why}" if why else "")
        + ". Sum it out by hand, or make it a branch, with int(...) around its draw, which is right "
        "where few of its values are likely."
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
