"""What the conditions of a path say about its free sites (design, section 5).

Free: nothing is left to satisfy once discrete sites are pinned. Box: every remaining condition
bounds single elements of sites. General: anything else; membership is then checked draw by draw.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pathmix import intervals
from pathmix.errors import ContinuousDecisionError, UnsupportedSiteError
from pathmix.expressions import Expression, expressions
from pathmix.intervals import UNDER_INCREASING, Interval, comparison
from pathmix.slp import StraightLineProgram

# Discrete sites that decide nothing are pinned while they have at most this many values.
MAX_UNDECIDING_VALUES = 256

Element = tuple[int, int]  # a site and a position in it
Bounds = list[tuple[Element, Interval]]

_MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
_NEGATED = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt"}


@dataclass(frozen=True)
class Region:
    """The set X_k on which a program follows a path."""

    kind: Literal["free", "box", "general"]
    boxes: dict[str, dict[int, Interval]]  # site -> position -> interval
    live: tuple[int, ...]  # decisions that must be checked draw by draw


def read_region(slp: StraightLineProgram, *, boxes: bool = True) -> Region:
    """The region of a path; `boxes=False` leaves every condition to be checked."""
    outputs = expressions(slp.graph, [site.pinned for site in slp.sites])
    conditions = [outputs[index] for index in slp.conditions]
    _check_decisions(slp, conditions[: len(slp.path.decisions)])
    _check_discrete(slp, conditions)

    found: dict[Element, Interval] = {}
    live = []
    for index, condition in enumerate(conditions):
        if not condition.free:
            continue
        bounds = _truth(condition, True) if boxes else None
        merged = None if bounds is None else _merge(slp, found, bounds)
        if merged is None:
            live.append(index)
        else:
            found = merged
    by_site: dict[str, dict[int, Interval]] = {}
    for (site, position), interval in found.items():
        by_site.setdefault(slp.sites[site].name, {})[position] = interval
    kind = "general" if live else "box" if by_site else "free"
    return Region(kind, by_site, tuple(live))


def _merge(
    slp: StraightLineProgram, found: dict[Element, Interval], bounds: Bounds
) -> dict[Element, Interval] | None:
    """Intersect with what is known; None if that leaves no volume or the site has no known bounds."""
    merged = dict(found)
    for (site, position), interval in bounds:
        support = slp.sites[site].bounds
        if support is None:
            return None
        shape = slp.sites[site].shape
        lower, upper = (float(np.broadcast_to(b, shape).ravel()[position]) for b in support)
        whole = Interval(lower, upper)
        narrowed = merged.get((site, position), whole) & interval
        if not narrowed.has_volume:
            return None
        if (narrowed.lower, narrowed.upper) != (whole.lower, whole.upper):
            merged[site, position] = narrowed
    return merged


def _truth(node: Expression, wanted: bool) -> Bounds | None:
    """The bounds that hold exactly when a truth value is `wanted`."""
    if not node.free:
        return [] if bool(np.all(node.value())) == wanted else None
    if node.size != 1:
        return None
    match node.operator:
        case "not":
            return _truth(node.inputs[0], not wanted)
        case "and" | "or":
            if wanted == (node.operator == "and"):
                return _all(_truth(child, wanted) for child in node.inputs)
            return _one_of(node.inputs, wanted)
        case "lt" | "le" | "gt" | "ge":
            operator = node.operator if wanted else _NEGATED[node.operator]
            return _compared(operator, *node.inputs)
        case "eq" | "ne":
            return _equal(node, wanted == (node.operator == "eq"))
        case "reshape" | "squeeze" | "broadcast_in_dim" | "reduce_and" | "reduce_or" | "copy":
            return _truth(node.inputs[0], wanted) if node.inputs[0].size == 1 else None
        case "convert_element_type":
            return _truth(node.inputs[0], wanted) if node.inputs[0].dtype == np.bool_ else None
    return None


def _all(parts: Iterable[Bounds | None]) -> Bounds | None:
    collected: Bounds = []
    for part in parts:
        if part is None:
            return None
        collected += part
    return collected


def _one_of(nodes: tuple[Expression, ...], wanted: bool) -> Bounds | None:
    """An alternative holds if a known side does; else it is one set of bounds if one side is open."""
    if any(not node.free and bool(np.all(node.value())) == wanted for node in nodes):
        return []
    open_sides = [node for node in nodes if node.free]
    return _truth(open_sides[0], wanted) if len(open_sides) == 1 else None


def _compared(operator: str, left: Expression, right: Expression) -> Bounds | None:
    if (number := right.number()) is not None:
        return _within(left, comparison(operator, number))
    if (number := left.number()) is not None:
        return _within(right, comparison(_MIRRORED[operator], number))
    return None


def _equal(node: Expression, wanted: bool) -> Bounds | None:
    side, other = node.inputs if node.inputs[0].free else node.inputs[::-1]
    number = other.number()
    if number is None:
        return None
    if side.dtype == np.bool_:
        return _truth(side, bool(number) == wanted)
    bounds = _within(side, Interval(number, number, True, True))
    has_volume = bounds is not None and all(interval.has_volume for _, interval in bounds)
    if wanted:
        return bounds if has_volume else None
    # A continuous value differs from any number with probability one.
    return [] if bounds is not None and not has_volume else None


def _within(node: Expression, interval: Interval | None) -> Bounds | None:
    """The bounds on single elements that put `node` inside `interval`."""
    if interval is None:
        return None
    if not node.free:
        number = node.number()
        return [] if number is not None and number in interval else None
    if (element := node.element()) is not None:
        return [(element, interval)]
    if node.size != 1:
        return None
    inner = node.inputs[0]
    if node.operator in UNDER_INCREASING:
        return _within(inner, UNDER_INCREASING[node.operator](interval))
    match node.operator:
        case "add" | "sub" | "mul" | "div" | "max" | "min":
            return _arithmetic(node, interval)
        case "neg":
            return _within(inner, interval.flipped())
        case "abs":
            return _within(inner, intervals.under_abs(interval))
        case "square":
            return _within(inner, intervals.under_power(interval, 2))
        case "integer_pow":
            return _within(inner, intervals.under_power(interval, node.params["y"]))
        case "clamp":
            return _clamped(node, interval)
        case "convert_element_type" if inner.dtype == np.bool_:
            if 0 in interval and 1 in interval:
                return []
            return _truth(inner, 1 in interval) if 0 in interval or 1 in interval else None
        case "convert_element_type":
            rounds = np.issubdtype(inner.dtype, np.floating) and np.issubdtype(node.dtype, np.integer)
            return _within(inner, intervals.under_trunc(interval) if rounds else interval)
        case "reshape" | "squeeze" | "broadcast_in_dim" | "copy" | "reduce_sum" | "reduce_max":
            return _within(inner, interval) if inner.size == 1 else None
    return None


def _arithmetic(node: Expression, interval: Interval) -> Bounds | None:
    left, right = node.inputs
    if (c := right.number()) is not None:
        match node.operator:
            case "add":
                return _within(left, intervals.under_add(interval, c))
            case "sub":
                return _within(left, intervals.under_add(interval, -c))
            case "mul":
                return _within(left, intervals.under_mul(interval, c))
            case "div" if c and np.issubdtype(node.dtype, np.floating):
                return _within(left, intervals.under_mul(interval, 1 / c))
            case "max":
                return _within(left, intervals.under_max(interval, c))
            case "min":
                return _within(left, intervals.under_min(interval, c))
    if (c := left.number()) is not None:
        match node.operator:
            case "add":
                return _within(right, intervals.under_add(interval, c))
            case "sub":
                return _within(right, intervals.under_add(interval.flipped(), -c))
            case "mul":
                return _within(right, intervals.under_mul(interval, c))
            case "max":
                return _within(right, intervals.under_max(interval, c))
            case "min":
                return _within(right, intervals.under_min(interval, c))
    return None


def _clamped(node: Expression, interval: Interval) -> Bounds | None:
    low, inner, high = node.inputs
    lower, upper = low.number(), high.number()
    if lower is None or upper is None:
        return None
    below = intervals.under_min(interval, upper)
    return _within(inner, None if below is None else intervals.under_max(below, lower))


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
                "MixtureSameFamily for cluster assignments."
            )


def _values(site: object) -> float:
    """How many values a discrete site can take."""
    bounds, size = getattr(site, "bounds"), int(np.prod(getattr(site, "shape")))
    if size == 0:
        return 1.0
    if bounds is None:
        return np.inf
    lower, upper = (np.broadcast_to(b, (size,)) if np.ndim(b) == 0 else np.ravel(b) for b in bounds)
    return float(np.exp(np.sum(np.log(upper - lower + 1.0))))
