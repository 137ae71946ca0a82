"""What a path is probably worth, by what its relatives are: regression over the values of discrete sites.

Paths are as close as they have features in common, and worths vary as a Gaussian process over that. Features
are the values of sites or, in grammars, the pieces of the tree, wherever they stand: whatever tells each
known path best from all others.
"""

import itertools
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import csr_array

from pathmix.discovery.grammar import Grammar, Setting, nodes

Features = Callable[[Setting], Iterable[Hashable]]

_FAR = 30.0  # nats below the best, where worths are all the same
_REACHES = (4.0, 16.0, 64.0)  # features in which paths differ, until they tell little of each other
_ROUGH = 1e-3  # part of the variance that no features explain
_DEPTHS = 3  # of pieces of a tree, beside whole ones
_MOST = 1_000  # relatives, the best


class Prediction:
    """Of worths, by those of known paths."""

    def __init__(self, known: Sequence[Setting], worth: Sequence[float], grammar: Grammar) -> None:
        order = np.argsort(-np.asarray(worth), kind="stable")[:_MOST]
        values = np.asarray(worth)[order]
        values = np.maximum(values, values[0] - _FAR)
        self._order, self._count = order, len(known)
        self._mean = float(np.mean(values))
        relatives = [known[number] for number in order]
        kinds: list[Features] = [values_of]
        if grammar.nests:
            kinds.append(Pieces(grammar))
        tables = [_Table(kind, relatives) for kind in kinds]
        fits = [_fit(table, reach, values - self._mean) for table in tables for reach in _REACHES]
        self._fit = min(fits, key=lambda fit: fit.error)

    def missing(self) -> np.ndarray:
        """By how much each known path is worth less than all others tell; zero for the worst of very many."""
        found = np.zeros(self._count)
        found[self._order] = -self._fit.left_out
        return found

    def __call__(self, proposals: Sequence[Setting]) -> np.ndarray:
        """In logs, for each; nothing of those that are like a known one, whose worth they probably have."""
        table, reach, coefficients, *_ = self._fit
        apart = table.apart(table.rows(proposals))
        predicted = self._mean + np.exp(-apart / reach) @ coefficients
        return np.where(apart.min(axis=1) == 0.0, -np.inf, predicted)


class _Table:
    """How often known paths have each feature."""

    def __init__(self, features: Features, known: Sequence[Setting]) -> None:
        self._features = features
        self._columns: dict[Hashable, int] = {}
        for setting in known:
            for feature in features(setting):
                self._columns.setdefault(feature, len(self._columns))
        self.known = self.rows(known)

    def rows(self, settings: Sequence[Setting]) -> csr_array:
        """One for each; features that no known path has are together in the last column."""
        rows, columns = [], []
        for row, setting in enumerate(settings):
            for feature in self._features(setting):
                rows.append(row)
                columns.append(self._columns.get(feature, len(self._columns)))
        shape = (len(settings), len(self._columns) + 1)
        return csr_array((np.ones(len(rows)), (rows, columns)), shape=shape)

    def apart(self, rows: csr_array) -> np.ndarray:
        """Features that are not in common with each of the known ones."""
        common = (rows @ self.known.T).toarray()
        own, others = ((some * some).sum(axis=1) for some in (rows, self.known))
        return np.maximum(own[:, None] + others[None, :] - 2 * common, 0.0)


class _Fit(NamedTuple):
    table: _Table
    reach: float
    coefficients: np.ndarray
    left_out: np.ndarray  # known worths, less what all others tell of each
    error: float  # mean square of these


def _fit(table: _Table, reach: float, values: np.ndarray) -> _Fit:
    kernel = np.exp(-table.apart(table.known) / reach) + _ROUGH * np.eye(len(values))
    inverse = cho_solve(cho_factor(kernel), np.eye(len(values)))
    coefficients = inverse @ values
    left_out = coefficients / np.diag(inverse)
    return _Fit(table, reach, coefficients, left_out, float(np.mean(left_out**2)))


def values_of(setting: Setting) -> Iterable[Hashable]:
    """Of all sites, element by element."""
    for name, value in setting.items():
        yield from ((name, place, one) for place, one in enumerate(np.ravel(np.asarray(value)).tolist()))


class Pieces:
    """Of trees: each node by itself, with its children, with theirs, and with all below, in any order."""

    def __init__(self, grammar: Grammar) -> None:
        self._grammar = grammar
        self._known: dict[Hashable, int] = {}

    def __call__(self, setting: Setting) -> Iterable[Hashable]:
        found: dict[str, tuple[int, ...]] = {}  # of each node, pieces of more and more depth
        for outer, rest in sorted(nodes(setting, self._grammar), key=lambda node: -len(node[0])):
            value = setting[outer + rest]
            below = [
                found[name]
                for inner in self._grammar.below(rest, value)
                if (name := outer + inner + rest) in found
            ]
            depths = [(), *zip(*below, strict=True)] if below else [()] * (_DEPTHS + 1)
            pieces = [
                *((rest, value, *sorted(below)) for below in depths[:_DEPTHS]),
                ("whole", rest, value, *sorted(depths[-1])),
            ]
            found[outer + rest] = tuple(map(self._number, pieces))
        yield from itertools.chain.from_iterable(found.values())

    def _number(self, piece: Hashable) -> int:
        return self._known.setdefault(piece, len(self._known))
