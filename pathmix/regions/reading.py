"""Reading a condition as bounds on single elements of sites (design, section 5).

What is read of an array holds for every element of it. None: not read.
"""

from collections.abc import Iterable

import numpy as np

from pathmix.regions import intervals
from pathmix.regions.expressions import Expression
from pathmix.regions.intervals import INVERSES, Interval, comparison
from pathmix.regions.saturation import saturation
from pathmix.regions.whole_numbers import is_whole, limits, wraps

Element = tuple[int, int]  # a site and a position in it
ElementIntervals = list[tuple[Element, Interval]]

_MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
_NEGATED = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt"}
# Every element of the result is one of the operand, and every one of those is in it.
_REARRANGING = ("reshape", "squeeze", "broadcast_in_dim", "transpose", "rev", "copy")


def read_bounds(node: Expression, wanted: bool = True) -> ElementIntervals | None:
    """The bounds that hold exactly when every element of a truth value is `wanted`."""
    if node.size == 0:
        return []
    if not node.free:
        return [] if bool(np.all(np.asarray(node.value()) == wanted)) else None
    match node.operator:
        case "not":
            return read_bounds(node.inputs[0], not wanted)
        case "and" | "or":
            if wanted == (node.operator == "and"):
                return _all(read_bounds(child, wanted) for child in node.inputs)
            return _one_of(node.inputs, wanted)
        case "lt" | "le" | "gt" | "ge":
            operator = node.operator if wanted else _NEGATED[node.operator]
            return _compared(operator, *node.inputs)
        case "eq" | "ne":
            return _equal(node, wanted == (node.operator == "eq"))
        case "concatenate" | "stack":
            return _all(read_bounds(child, wanted) for child in node.inputs)
        case "reduce_and" | "reduce_or":
            inner = node.inputs[0]
            each = wanted == (node.operator == "reduce_and")
            return read_bounds(inner, wanted) if each or inner.size == node.size else None
        case "convert_element_type" if node.inputs[0].dtype == np.bool_:
            return read_bounds(node.inputs[0], wanted)
        case operator if operator in _REARRANGING:
            return read_bounds(node.inputs[0], wanted)
    return None


def _all(parts: Iterable[ElementIntervals | None]) -> ElementIntervals | None:
    collected: ElementIntervals = []
    for part in parts:
        if part is None:
            return None
        collected += part
    return collected


def _one_of(nodes: tuple[Expression, ...], wanted: bool) -> ElementIntervals | None:
    """An alternative holds if a known side does; else it is one set of bounds if one side is open."""
    known = [np.asarray(node.value()) for node in nodes if not node.free]
    if any(np.all(value == wanted) for value in known):
        return []
    open_sides = [node for node in nodes if node.free]
    decided = all(np.all(value != wanted) for value in known)
    return read_bounds(open_sides[0], wanted) if decided and len(open_sides) == 1 else None


def _compared(operator: str, left: Expression, right: Expression) -> ElementIntervals | None:
    if left.free and right.free:
        return None
    if left.free:
        return _beyond(left, operator, right)
    return _beyond(right, _MIRRORED[operator], left)


def _beyond(node: Expression, operator: str, known: Expression) -> ElementIntervals | None:
    """Every element of `node` on one side of known numbers."""
    if (number := known.number()) is not None:
        return _within(node, comparison(operator, number))
    numbers = np.asarray(known.value(), float)
    if np.any(np.isnan(numbers)) or (is_whole(known) and np.any(np.abs(numbers) > 2**53)):
        return None
    tightest = np.maximum if operator in ("gt", "ge") else np.minimum
    if (one := _the_same_everywhere(node)) is not None:
        return _within(one, comparison(operator, float(tightest.reduce(numbers, axis=None))))
    if (elements := node.elements()) is None:
        return None
    site, (positions, numbers) = elements[0], np.broadcast_arrays(elements[1], numbers)
    ends = np.full(positions.max() + 1, -np.inf if tightest is np.maximum else np.inf)
    tightest.at(ends, positions, numbers)
    found: ElementIntervals = []
    for position in np.unique(positions).tolist():
        interval = comparison(operator, float(ends[position]))
        assert interval is not None
        found.append(((site, position), interval))
    return found


def _the_same_everywhere(node: Expression) -> Expression | None:
    """What an array repeats, if it is one number all over."""
    while node.size != 1 and node.operator in _REARRANGING:
        node = node.inputs[0]
    return node if node.size == 1 else None


def _equal(node: Expression, wanted: bool) -> ElementIntervals | None:
    side, other = node.inputs if node.inputs[0].free else node.inputs[::-1]
    number = other.number()
    if number is None or np.isnan(number):
        return None
    if side.dtype == np.bool_:
        return read_bounds(side, bool(number) == wanted)
    if not wanted:
        # A continuous value differs from any number with probability one; what is computed from it need not.
        return [] if side.elements() is not None else None
    bounds = _within(side, Interval(number, number, True, True))
    has_volume = bounds is not None and all(interval.has_volume for _, interval in bounds)
    return bounds if has_volume else None


def _within(node: Expression, interval: Interval | None) -> ElementIntervals | None:
    """The bounds on single elements that put every element of `node` inside `interval`."""
    if interval is None:
        return None
    if not node.free:
        return [] if all(value in interval for value in np.asarray(node.value(), float).flat) else None
    if (elements := node.elements()) is not None:
        site, positions = elements
        return [((site, position), interval) for position in np.unique(positions).tolist()]
    inner = node.inputs[0]
    match node.operator:
        case "add" | "sub" | "mul" | "neg" | "abs" | "square" | "integer_pow" if wraps(node):
            return None
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
        case "floor":
            return _within(inner, intervals.under_floor(interval))
        case "ceil":
            return _within(inner, intervals.under_ceil(interval))
        case "round":
            to_even = "EVEN" in str(getattr(node.params["rounding_method"], "name", ""))
            return _within(inner, intervals.under_round(interval, to_even=to_even))
        case "convert_element_type":
            return _converted(node, interval)
        case "concatenate" | "stack":
            return _all(_within(child, interval) for child in node.inputs)
        case "reduce_max" if interval.lower == -np.inf and interval.lower_closed and inner.size:
            return _within(inner, interval)
        case "reduce_min" if interval.upper == np.inf and interval.upper_closed and inner.size:
            return _within(inner, interval)
        case "reduce_sum" | "reduce_max" | "reduce_min":
            return _within(inner, interval) if inner.size == node.size else None
        case operator if operator in INVERSES:
            values = saturation(operator, np.dtype(node.dtype))
            return _within(inner, intervals.under_increasing(interval, INVERSES[operator], values))
        case operator if operator in _REARRANGING:
            return _within(inner, interval)
    return None


def _arithmetic(node: Expression, interval: Interval) -> ElementIntervals | None:
    left, right = node.inputs
    known, free = (right, left) if left.free else (left, right)
    c = known.number()
    if c is None or not np.isfinite(c):
        return None
    match node.operator:
        case "add":
            return _within(free, intervals.under_add(interval, c))
        case "sub" if free is left:
            return _within(free, intervals.under_add(interval, -c))
        case "sub":
            return _within(free, intervals.under_add(interval.flipped(), -c))
        case "mul":
            return _within(free, intervals.under_mul(interval, c))
        case "div" if free is left and np.issubdtype(node.dtype, np.floating):
            return _within(free, intervals.under_div(interval, c))
        case "max":
            return _within(free, intervals.under_max(interval, c))
        case "min":
            return _within(free, intervals.under_min(interval, c))
    return None


def _clamped(node: Expression, interval: Interval) -> ElementIntervals | None:
    low, inner, high = node.inputs
    lower, upper = low.number(), high.number()
    if lower is None or upper is None or np.isnan(lower) or np.isnan(upper):
        return None
    below = intervals.under_min(interval, upper)
    return _within(inner, None if below is None else intervals.under_max(below, lower))


def _converted(node: Expression, interval: Interval) -> ElementIntervals | None:
    inner = node.inputs[0]
    if inner.dtype == np.bool_:
        if 0 in interval and 1 in interval:
            return []
        return read_bounds(inner, 1 in interval) if 0 in interval or 1 in interval else None
    if is_whole(node):
        if is_whole(inner):
            return None if wraps(node) else _within(inner, interval)
        ends = np.iinfo(node.dtype)
        return _within(inner, intervals.under_conversion(interval, int(ends.min), int(ends.max)))
    if not np.issubdtype(node.dtype, np.floating):
        return None
    narrowed = np.finfo(node.dtype).nmant < 52
    if is_whole(inner) and narrowed and max(map(abs, limits(inner))) > 2 ** np.finfo(node.dtype).nmant:
        return None  # whole numbers are rounded
    if narrowed and interval.excludes_infinity:
        return None
    return _within(inner, interval)
