"""What a path is probably worth, by what its relatives are: regression over the values of discrete sites.

Paths are as close as they have values in common, and worths vary as a Gaussian process over that.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import csr_array

from pathmix.program.path import PinnedValue

_FAR = 30.0  # nats below the best, where worths are all the same
_REACH = 16.0  # values in which paths differ, until they tell little of each other
_ROUGH = 1e-3  # part of the variance that no values explain
_MOST = 2_000  # relatives, the best


class Prediction:
    """Of worths, by those of known paths."""

    def __init__(self, known: Sequence[Mapping[str, PinnedValue]], worth: Sequence[float]) -> None:
        order = np.argsort(-np.asarray(worth), kind="stable")[:_MOST]
        values = np.asarray(worth)[order]
        values = np.maximum(values, values[0] - _FAR)
        self._columns: dict[object, int] = {}
        self._relatives = self._indicators([known[number] for number in order], learn=True)
        self._mean = float(np.mean(values))
        kernel = _closeness(self._relatives, self._relatives) + _ROUGH * np.eye(len(order))
        self._coefficients = cho_solve(cho_factor(kernel), values - self._mean)

    def __call__(self, proposals: Sequence[Mapping[str, PinnedValue]]) -> np.ndarray:
        """In logs, for each."""
        kernel = _closeness(self._indicators(proposals), self._relatives)
        return self._mean + kernel @ self._coefficients

    def _indicators(self, settings: Sequence[Mapping[str, PinnedValue]], *, learn: bool = False) -> csr_array:
        """A row for each, with a one for every value that it has; what no relative has in the last column."""
        rows, columns = [], []
        for row, setting in enumerate(settings):
            for value in _values(setting):
                if learn:
                    self._columns.setdefault(value, len(self._columns))
                rows.append(row)
                columns.append(self._columns.get(value, len(self._columns)))
        shape = (len(settings), len(self._columns) + 1)
        return csr_array((np.ones(len(rows)), (rows, columns)), shape=shape)


def _values(setting: Mapping[str, PinnedValue]) -> Iterable[object]:
    """Of all sites, element by element."""
    for name, value in setting.items():
        yield from ((name, place, one) for place, one in enumerate(np.ravel(np.asarray(value)).tolist()))


def _closeness(some: csr_array, others: csr_array) -> np.ndarray:
    common = (some[:, :-1] @ others[:, :-1].T).toarray()
    apart = some.sum(axis=1)[:, None] + others.sum(axis=1)[None, :] - 2 * common
    return np.exp(-apart / _REACH)
