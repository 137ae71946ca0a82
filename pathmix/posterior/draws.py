"""Draws whose sites depend on the path."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pathmix.errors import MissingExtraError, ValueLookupError
from pathmix.posterior.frames import of_columns

if TYPE_CHECKING:
    import pandas as pd
    import torch


Piece = tuple[np.ndarray, dict[str, np.ndarray]]  # rows that took one path, and their values


class Column(NamedTuple):
    """One site of all draws: NaN where a draw has nothing."""

    values: np.ndarray
    present: np.ndarray  # which draws have it
    filled: np.ndarray  # which numbers are a draw's own; shapes of paths may differ


class Draws(Mapping[str, np.ndarray]):
    """An array per site, draws along the first axis; NaN where a draw's path has no such site.

    So means, medians and quantiles of a site that some draws lack are NaN, and not some number:
    `draws["b"][draws.present("b")]` are the values of those that have it. Whole numbers and truth values stay
    so unless some are missing. Where paths give a site different shapes, the smaller ones are filled up with
    NaN. `path` says which path each draw took, and `labels` what the paths are called.
    """

    def __init__(self, pieces: Sequence[Piece], path: np.ndarray, labels: Sequence[str] = ()) -> None:
        names = dict.fromkeys(name for _, values in pieces for name in values)
        self._columns = {name: _merged(name, pieces, len(path)) for name in names}
        self._pieces = tuple(pieces)
        self.path = path
        self.labels = tuple(labels)

    def __getitem__(self, name: str) -> np.ndarray:
        return self._column(name).values

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def present(self, name: str) -> np.ndarray:
        """Which draws have a site."""
        return self._column(name).present

    def filled(self, name: str) -> np.ndarray:
        """Which numbers of a site are there: of draws that have it, within the shape that it has there."""
        return self._column(name).filled

    def runs(self) -> "Iterator[Run]":
        """The draws one by one, each with the sites that it has, as its path has them."""
        parts: list[list[tuple[int, int]]] = [[] for _ in self.path]
        for number, (rows, _) in enumerate(self._pieces):
            for place, row in enumerate(rows):
                parts[row].append((number, place))
        for row, own in enumerate(parts):
            values = {
                name: np.asarray(column[place])
                for number, place in own
                for name, column in self._pieces[number][1].items()
            }
            yield Run(values, self.labels[self.path[row]] if self.labels else "")

    def where_path(self, path: str | int) -> "Draws":
        """The draws that took a path, given by its label or its position; with the sites that it has."""
        taken = self.path == position_of(path, self.labels)
        numbers = np.cumsum(taken) - 1
        pieces = [(numbers[rows], values) for rows, values in self._pieces if taken[rows].all()]
        return Draws(pieces, self.path[taken], self.labels)

    def to_dataframe(self) -> "pd.DataFrame":
        """A row for each draw: the label of its path, and a column for each number (`"w[0,1]"`)."""
        labels = np.array(self.labels, dtype=object)[self.path] if self.labels else self.path
        return of_columns({"path": labels}, self, "draws.to_dataframe()")

    def to_torch(self) -> "dict[str, torch.Tensor]":
        """A tensor per site, NaN where a draw's path has no such site.

        Floats come in PyTorch's default precision. Whole numbers stay so unless some are missing.
        """
        try:
            import torch
        except ModuleNotFoundError as error:
            raise MissingExtraError("to_torch()", error.name) from error

        tensors = {}
        for name, column in self._columns.items():
            tensor = torch.as_tensor(np.array(column.values))
            tensors[name] = tensor.to(torch.get_default_dtype()) if tensor.is_floating_point() else tensor
        return tensors

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        raise TypeError("Draws are an array for each site: draws['x'], or draws.to_dataframe().")

    __eq__ = object.__eq__  # arrays have no one answer
    __hash__ = object.__hash__  # pyright: ignore[reportAssignmentType]

    def __repr__(self) -> str:
        sites = ", ".join(f"{name}: {column.values.shape}" for name, column in self._columns.items())
        return f"Draws({len(self.path)} draws; {sites})"

    def _column(self, name: str) -> Column:
        try:
            return self._columns[name]
        except KeyError:
            known = ", ".join(sorted(self._columns)) or "none"
            raise KeyError(f"no site called {name!r} among the draws; there are: {known}") from None


class Run(Mapping[str, Any]):
    """One draw: the values of the sites that it has."""

    def __init__(self, values: dict[str, np.ndarray], path: str) -> None:
        self._values = values
        self.path = path  # the label of its path

    def __getitem__(self, name: str) -> Any:
        if name not in self._values:
            raise KeyError(f"this draw has no site called {name!r}; it has: {', '.join(self._values)}")
        found = self._values[name]
        return found.item() if found.ndim == 0 else found

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


def position_of(path: str | int, labels: Sequence[str]) -> int:
    """Of a path, by its label or its position."""
    if isinstance(path, (int, np.integer)) and not isinstance(path, bool):
        if -len(labels) <= path < len(labels):
            return int(path) % len(labels)
        raise ValueLookupError(f"There are {len(labels)} paths, numbered from 0; there is no {path}.")
    if path not in labels:
        near = [label for label in labels if str(path) in label] or labels
        shown = ", ".join(map(repr, near[:5])) + (", ..." if len(near) > 5 else "")
        raise ValueLookupError(f"No path is called {path!r}; there are {shown}.")
    return labels.index(path)


def _merged(name: str, pieces: Sequence[Piece], count: int) -> Column:
    found = [(rows, np.asarray(values[name])) for rows, values in pieces if name in values]
    rank = max(values.ndim for _, values in found)
    padded = [(rows, values.reshape(_leading_ones(values, rank))) for rows, values in found]
    shape = tuple(np.max([values.shape[1:] for _, values in padded], axis=0, initial=0).astype(int))
    dtype = np.result_type(*(values.dtype for _, values in padded))
    present = np.zeros(count, bool)
    for rows, _ in padded:
        present[rows] = True
    is_whole = present.all() and all(values.shape[1:] == shape for _, values in padded)
    if not is_whole and not np.issubdtype(dtype, np.inexact):
        dtype = np.dtype(np.float64)
    data = np.full((count, *shape), 0 if is_whole else np.nan, dtype)
    filled = np.zeros((count, *shape), bool)
    for rows, values in padded:
        where: tuple[Any, ...] = (rows, *(slice(size) for size in values.shape[1:]))
        data[where], filled[where] = values, True
    return Column(data, present, filled)


def _leading_ones(values: np.ndarray, rank: int) -> tuple[int, ...]:
    return (len(values), *(1,) * (rank - values.ndim), *values.shape[1:])
