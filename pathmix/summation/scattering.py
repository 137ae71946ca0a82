"""On which variables the elements of an array depend that is written into at places that are unknown."""

from collections.abc import Mapping
from itertools import product
from typing import Any

import jax
import numpy as np

from pathmix.summation.sets import Sets

_MOST_PLACES = 1_000


def reached(
    sets: Sets, params: Mapping[str, Any], filled: list[np.ndarray], positions: np.ndarray
) -> np.ndarray | None:
    """The sets after a scatter, given those of its operands. None if too much may be written where.

    Of `positions`, some are known; the others (-1) may be anywhere along their axis.
    """
    operand, rows, updates = filled
    numbers = params["dimension_numbers"]
    sizes = np.array([operand.shape[axis] for axis in numbers.scatter_dims_to_operand_dims], int)
    is_open = positions < 0
    open_columns = np.flatnonzero(is_open.any(axis=tuple(range(is_open.ndim - 1))))
    if np.prod(sizes[open_columns]) > _MOST_PLACES:
        return None

    def written(where: np.ndarray, values: np.ndarray) -> np.ndarray:
        return np.asarray(
            jax.lax.scatter(np.zeros_like(operand), where, values, numbers, mode=params["mode"])
        )

    # A write depends on where it goes, and on what it brings.
    window = tuple(sorted(numbers.update_window_dims))
    brought = sets.union(updates, np.expand_dims(sets.along(rows, [rows.ndim - 1]), window))
    result = operand
    for place in product(*(range(sizes[column]) for column in open_columns)):
        anywhere = np.zeros(len(sizes), int)
        anywhere[open_columns] = place
        where = np.where(is_open, anywhere, positions)
        if written(where, np.ones_like(brought)).sum() < brought.size:  # several writes to one place
            return None
        result = sets.union(result, written(where, brought))
    return result
