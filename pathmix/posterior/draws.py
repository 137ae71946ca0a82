"""Draws whose sites depend on the path."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pathmix.errors import MissingExtraError

if TYPE_CHECKING:
    import torch


class Draws(Mapping[str, np.ma.MaskedArray]):
    """A masked array per site, draws along the first axis.

    A draw whose path has no such site is masked there. Where paths give a site different shapes,
    the smaller ones are filled up with masked elements. `path` says which path each draw took.
    """

    def __init__(self, arrays: dict[str, np.ma.MaskedArray], path: np.ndarray) -> None:
        self._arrays = arrays
        self.path = path

    def __getitem__(self, name: str) -> np.ma.MaskedArray:
        try:
            return self._arrays[name]
        except KeyError:
            known = ", ".join(sorted(self._arrays)) or "none"
            raise KeyError(f"no site called {name!r} among the draws; there are: {known}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def to_torch(self) -> "dict[str, torch.Tensor]":
        """A tensor per site, NaN where a draw's path has no such site.

        Floats come in PyTorch's default precision. Whole numbers stay so unless some are missing.
        """
        try:
            import torch
        except ModuleNotFoundError as error:
            raise MissingExtraError("to_torch()", error.name) from error

        tensors = {}
        for name, array in self._arrays.items():
            missing = np.ma.getmaskarray(array)
            data = np.where(missing, np.nan, array.data) if missing.any() else array.data
            tensor = torch.as_tensor(np.array(data))
            tensors[name] = tensor.to(torch.get_default_dtype()) if tensor.is_floating_point() else tensor
        return tensors

    def __repr__(self) -> str:
        sites = ", ".join(f"{name}: {array.shape}" for name, array in self._arrays.items())
        return f"Draws({len(self.path)} draws; {sites})"


Piece = tuple[np.ndarray, dict[str, np.ndarray]]  # rows of the result, and their values


def merge(pieces: Sequence[Piece], path: np.ndarray) -> Draws:
    """Put the draws of each path into their rows."""
    names: dict[str, None] = {}
    for _, values in pieces:
        names.update(dict.fromkeys(values))
    return Draws({name: _merge_site(name, pieces, len(path)) for name in names}, path)


def _merge_site(name: str, pieces: Sequence[Piece], count: int) -> np.ma.MaskedArray:
    present = [(rows, np.asarray(values[name])) for rows, values in pieces if name in values]
    rank = max(values.ndim for _, values in present)
    padded = [(rows, values.reshape(_leading_ones(values, rank))) for rows, values in present]
    shape = tuple(np.max([values.shape[1:] for _, values in padded], axis=0, initial=0).astype(int))
    dtype = np.result_type(*(values.dtype for _, values in padded))
    data = np.zeros((count, *shape), dtype)
    mask = np.ones((count, *shape), bool)
    for rows, values in padded:
        where: tuple[Any, ...] = (rows, *(slice(size) for size in values.shape[1:]))
        data[where], mask[where] = values, False
    return np.ma.MaskedArray(data, mask)


def _leading_ones(values: np.ndarray, rank: int) -> tuple[int, ...]:
    return (len(values), *(1,) * (rank - values.ndim), *values.shape[1:])
