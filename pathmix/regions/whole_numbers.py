"""Whole numbers of a type wrap around at its ends; here is which expressions cannot get there."""

import math

import numpy as np

from pathmix.regions.expressions import Expression

INF = math.inf
# Conversion to 64 bits is taken to give no more than floats count without gaps.
_COUNTED = 2.0**53


def is_whole(node: Expression) -> bool:
    return np.issubdtype(node.dtype, np.integer)


def wraps(node: Expression) -> bool:
    """Whether arithmetic with whole numbers, or a conversion between them, may leave the type's range."""
    if not is_whole(node):
        return False
    result = _exact(node)
    return result is None or not _is_within(result, _of_type(node.dtype))


def limits(node: Expression) -> tuple[float, float]:
    """Numbers between which every element of an expression lies."""
    if not node.free:
        values = np.asarray(node.value(), float)
        return float(values.min(initial=INF)), float(values.max(initial=-INF))
    if not is_whole(node):
        return (0.0, 1.0) if node.dtype == np.bool_ else _exact(node) or (-INF, INF)
    result, kept = _exact(node), _of_type(node.dtype)
    return result if result is not None and _is_within(result, kept) else kept


def _exact(node: Expression) -> tuple[float, float] | None:
    """Limits of what the operation would give if numbers had no end; None for one that is not known."""
    parts = [limits(child) for child in node.inputs]
    match node.operator:
        case "add":
            return parts[0][0] + parts[1][0], parts[0][1] + parts[1][1]
        case "sub":
            return parts[0][0] - parts[1][1], parts[0][1] - parts[1][0]
        case "neg":
            return -parts[0][1], -parts[0][0]
        case "mul" if all(map(math.isfinite, (*parts[0], *parts[1]))):
            products = [a * b for a in parts[0] for b in parts[1]]
            return min(products), max(products)
        case "abs":
            return 0.0, max(map(abs, parts[0]))
        case "max":
            return max(parts[0][0], parts[1][0]), max(parts[0][1], parts[1][1])
        case "min":
            return min(parts[0][0], parts[1][0]), min(parts[0][1], parts[1][1])
        case "clamp":
            (low, _), _, (_, high) = parts
            return low, high
        case "convert_element_type" if is_whole(node) and not is_whole(node.inputs[0]):
            low, high = _of_type(node.dtype)  # conversion from floats stays in the range
            return max(low, parts[0][0] - 1, -_COUNTED), min(high, parts[0][1] + 1, _COUNTED)
        case "convert_element_type":
            return parts[0]
        case "floor" | "ceil" | "round":
            return parts[0][0] - 1, parts[0][1] + 1
    return None


def _of_type(dtype: np.dtype) -> tuple[float, float]:
    return float(np.iinfo(dtype).min), float(np.iinfo(dtype).max)


def _is_within(inner: tuple[float, float], outer: tuple[float, float]) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]
