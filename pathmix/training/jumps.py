"""Jumps: sites whose movement makes the density of a path jump.

Reparameterised gradients do not see jumps. The switches of a density (`switches.py`) are candidates, and
most are harmless: `abs`, guards against overflow, the checks inside distributions. So jumps are measured:
between two vectors on different sides of a switch, bisection finds where it flips, and the densities right
before and right after are compared.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from pathmix.engine.requests import Asking

_PAIRS = 8  # of vectors for each switch that flips
_MOST_PAIRS = 64  # for all of them, if one for each is not more
_HALVINGS = 24  # so near to a flip, a smooth density hardly changes
_SMALLEST_JUMP = 1e-4  # nats


class Marked(NamedTuple):
    """Densities at vectors, and the marks of the switches on the way to each."""

    log_joint: np.ndarray
    log_det: np.ndarray  # of the map from the vector
    inside: np.ndarray  # the region
    marks: np.ndarray


Evaluate = Callable[[np.ndarray], Asking[Marked]]


class Tried(NamedTuple):
    """Switches that flipped, and whether there is a jump where they do."""

    jumping: frozenset[int]
    harmless: frozenset[int]


def tried_switches(
    evaluate: Evaluate, vectors: np.ndarray, marks: np.ndarray, known: frozenset[int] = frozenset()
) -> Asking[Tried]:
    """What flips between the vectors show, which have these marks; `known` switches are not tried again."""
    usable = np.all(np.isfinite(vectors), axis=1)
    vectors, marks = vectors[usable], marks[usable]
    flips = np.any(marks != marks[:1], axis=0) if len(marks) else np.zeros(0, bool)
    flipping = [int(s) for s in np.flatnonzero(flips) if s not in known]
    each = max(1, min(_PAIRS, _MOST_PAIRS // max(len(flipping), 1)))
    pairs = [(s, *pair) for s in flipping for pair in _pairs(marks[:, s], each)]
    if not pairs:
        return Tried(frozenset(), frozenset())
    switch, left, right = (np.array(column) for column in zip(*pairs, strict=True))
    before, after = yield from _bisected(evaluate, vectors[left], vectors[right], marks[left, switch], switch)
    jumps = yield from _jumps(evaluate, before, after)
    jumping = frozenset(switch[jumps].tolist())
    return Tried(jumping, frozenset(flipping) - jumping)


def _pairs(marks: np.ndarray, count: int) -> list[tuple[int, int]]:
    """Rows on different sides of a switch, spread over the rows."""
    starts = np.linspace(0, len(marks) - 1, min(count, len(marks))).astype(int)
    others = [np.flatnonzero(marks != marks[row]) for row in starts]
    return [
        (int(row), int(other[turn % len(other)]))
        for turn, (row, other) in enumerate(zip(starts, others, strict=True))
    ]


def _bisected(
    evaluate: Evaluate, before: np.ndarray, after: np.ndarray, marks: np.ndarray, switch: np.ndarray
) -> Asking[tuple[np.ndarray, np.ndarray]]:
    """Neighbours with a flip of their switch between them, well above what rounding tells apart."""
    rows = np.arange(len(before))
    for _ in range(min(_HALVINGS, int(-0.75 * np.log2(np.finfo(before.dtype).eps)))):
        middle = (before + after) / 2
        found = yield from evaluate(middle)
        same = (found.marks[rows, switch] == marks)[:, None]
        before, after = np.where(same, middle, before), np.where(same, after, middle)
    return before, after


def _jumps(evaluate: Evaluate, before: np.ndarray, after: np.ndarray) -> Asking[np.ndarray]:
    """Whether the density changes more between neighbours than a step further on either side."""
    step = after - before
    points = np.concatenate([before - step, before, after, after + step])
    found = yield from evaluate(points)
    densities = np.split(found.log_joint + found.log_det, 4)
    beside, across, beyond = (_change(a, b) for a, b in pairwise(densities))
    smooth = np.fmax(*(np.where(np.isfinite(change), change, 0.0) for change in (beside, beyond)))
    size = np.where(np.isfinite(densities[1]), np.abs(densities[1]), 0.0)
    rounding = 1e3 * np.finfo(before.dtype).eps * size
    return across > _SMALLEST_JUMP + 10 * smooth + rounding


def _change(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        return np.where(low == high, 0.0, np.abs(low - high))  # from -inf to -inf is none
