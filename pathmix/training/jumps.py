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

_PAIRS = 8  # of vectors for each switch that flips
_MOST_PAIRS = 256  # for all of them, if one for each is not more
_SMALLEST_JUMP = 1e-4  # nats


class Marked(NamedTuple):
    """Densities of vectors, and the marks of the switches on the way to each."""

    densities: np.ndarray
    marks: np.ndarray


Evaluate = Callable[[np.ndarray], Marked]


def jumping_switches(evaluate: Evaluate, vectors: np.ndarray, marks: np.ndarray) -> set[int]:
    """The switches with a jump, as far as flips between the vectors show; `marks` are theirs."""
    usable = np.all(np.isfinite(vectors), axis=1)
    vectors, marks = vectors[usable], marks[usable]
    flipping = [s for s in range(marks.shape[1]) if np.any(marks[:, s] != marks[:1, s])]
    each = max(1, min(_PAIRS, _MOST_PAIRS // max(len(flipping), 1)))
    pairs = [(s, *pair) for s in flipping for pair in _pairs(marks[:, s], each)]
    if not pairs:
        return set()
    switch, left, right = (np.array(column) for column in zip(*pairs, strict=True))
    before, after = _bisected(evaluate, vectors[left], vectors[right], marks[left, switch], switch)
    return set(switch[_jumps(evaluate, before, after)].tolist())


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
) -> tuple[np.ndarray, np.ndarray]:
    """Neighbours with a flip of their switch between them, three quarters of the precision apart."""
    rows = np.arange(len(before))
    for _ in range(int(-0.75 * np.log2(np.finfo(before.dtype).eps))):
        middle = (before + after) / 2
        same = (evaluate(middle).marks[rows, switch] == marks)[:, None]
        before, after = np.where(same, middle, before), np.where(same, after, middle)
    return before, after


def _jumps(evaluate: Evaluate, before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Whether the density changes more between neighbours than a step further on either side."""
    step = after - before
    densities = [evaluate(point).densities for point in (before - step, before, after, after + step)]
    beside, across, beyond = (_change(a, b) for a, b in pairwise(densities))
    smooth = np.fmax(*(np.where(np.isfinite(change), change, 0.0) for change in (beside, beyond)))
    size = np.where(np.isfinite(densities[1]), np.abs(densities[1]), 0.0)
    rounding = 1e3 * np.finfo(before.dtype).eps * size
    return across > _SMALLEST_JUMP + 10 * smooth + rounding


def _change(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        return np.where(low == high, 0.0, np.abs(low - high))  # from -inf to -inf is none
