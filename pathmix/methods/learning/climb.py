"""Climb: a maximum of what importance sampling tells, as far as its draws can be trusted."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

_STEPS = 50
_TRIES = 30  # halvings of a step
_MEMORY = 10  # steps that tell the curvature
_TRUSTED = 0.2  # of the effective draws must be left
_NOTHING = 1e-8  # nats


class Point(NamedTuple):
    """What is known at some values of parameters."""

    value: float  # log-evidence, less that where draws are from
    slope: np.ndarray
    share: float  # of effective draws that is left
    error: float  # standard error of the value

    @property
    def is_trusted(self) -> bool:
        return self.share >= _TRUSTED and np.isfinite(self.value) and bool(np.all(np.isfinite(self.slope)))


Look = Callable[[np.ndarray], Point]


def climb(look: Look, start: np.ndarray) -> np.ndarray:
    """A higher place, by L-BFGS; the climb ends at the edge of what can be trusted."""
    here, now = start, look(start)
    memory: list[tuple[np.ndarray, np.ndarray]] = []
    for _ in range(_STEPS):
        direction = _direction(now.slope, memory)
        steepness = float(direction @ now.slope)
        if not steepness > 0:
            return here
        at_edge, length = False, 1.0
        for _ in range(_TRIES):
            there = here + length * direction
            found = look(there)
            if found.is_trusted and found.value > now.value + 1e-4 * length * steepness:
                break
            at_edge = at_edge or not found.is_trusted
            length /= 2
        else:
            return here
        gain = found.value - now.value
        moved, bent = there - here, now.slope - found.slope
        if moved @ bent > 0:
            memory = [*memory[1 - _MEMORY :], (moved, bent)]
        here, now = there, found
        if at_edge or gain < _NOTHING:
            return here
    return here


def _direction(slope: np.ndarray, memory: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Towards the top of the parabola that the last steps suggest."""
    if not memory:
        return slope / max(1.0, float(np.linalg.norm(slope)))
    direction, factors = slope.copy(), []
    for moved, bent in reversed(memory):
        factors.append(float(moved @ direction) / float(moved @ bent))
        direction -= factors[-1] * bent
    moved, bent = memory[-1]
    direction *= float(moved @ bent) / float(bent @ bent)
    for (moved, bent), factor in zip(memory, reversed(factors), strict=True):
        direction += moved * (factor - float(bent @ direction) / float(moved @ bent))
    return direction
