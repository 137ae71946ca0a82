"""Sets of variables, by number: arrays of numbers say on which variables each element of an array depends."""

from collections.abc import Iterable, Sequence

import numpy as np


class Sets:
    """All sets that were met so far. Number 0 is the empty one."""

    def __init__(self) -> None:
        self._members: list[frozenset[int]] = [frozenset()]
        self._numbers: dict[frozenset[int], int] = {frozenset(): 0}
        self._unions: dict[tuple[int, int], int] = {}

    def number(self, members: Iterable[int]) -> int:
        found = frozenset(members)
        if found not in self._numbers:
            self._numbers[found] = len(self._members)
            self._members.append(found)
        return self._numbers[found]

    def members(self, number: int) -> frozenset[int]:
        return self._members[number]

    def union(self, *arrays: np.ndarray) -> np.ndarray:
        """Element by element; shapes broadcast."""
        result = arrays[0]
        for array in arrays[1:]:
            result = self._pair(result, array)
        return result

    def along(self, array: np.ndarray, axes: Sequence[int]) -> np.ndarray:
        """The unions along some axes, which are gone then."""
        for axis in sorted(axes, reverse=True):
            rows = np.moveaxis(array, axis, 0)
            if len(rows) == 0:
                rows = np.zeros((1, *rows.shape[1:]), array.dtype)
            while (half := len(rows) // 2) > 0:
                rows = np.concatenate([self._pair(rows[:half], rows[half : 2 * half]), rows[2 * half :]])
            array = rows[0]
        return array

    def all(self, array: np.ndarray) -> int:
        """The union of all elements."""
        return int(self.along(np.unique(array), [0]))

    def _pair(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        one, other = np.broadcast_arrays(one, other)
        result = np.maximum(one, other)  # where they are equal, or one is empty
        unequal = (one != other) & (one != 0) & (other != 0)
        if unequal.any():
            pairs = np.stack([one[unequal], other[unequal]], axis=1)
            different, place = np.unique(pairs, axis=0, return_inverse=True)
            result = np.array(result)
            result[unequal] = np.array([self._united(int(a), int(b)) for a, b in different])[place.ravel()]
        return result

    def _united(self, one: int, other: int) -> int:
        if (one, other) not in self._unions:
            self._unions[one, other] = self.number(self._members[one] | self._members[other])
        return self._unions[one, other]
