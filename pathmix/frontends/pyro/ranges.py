"""Ranges: the numbers by which operations look up parts of a tensor, and those that PyTorch takes there.

With others PyTorch raises an error, and a run that fails is left out. The density, in JAX, would go on with
the nearest part that there is.
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

aten: Any = torch.ops.aten
Place = tuple[Tensor, int, bool]  # numbers, how many parts there are, whether they may count from the end


def _parts(x: Tensor, indices: Any, *_: Any) -> Iterator[Place]:
    """`x[i, j]`; masks are for as many axes as they have."""
    dim = 0
    for index in indices:
        if index is None:
            dim += 1
        elif index.dtype in (torch.bool, torch.uint8):
            dim += index.ndim
        else:
            yield index, x.shape[dim], True
            dim += 1


def _along(x: Tensor, dim: int, index: Tensor, *_: Any) -> Iterator[Place]:
    yield index, x.shape[dim] if x.ndim else 1, False


def _fill(x: Tensor, dim: int, index: Tensor, *_: Any) -> Iterator[Place]:
    yield index, x.shape[dim] if x.ndim else 1, True


def _elements(x: Tensor, index: Tensor, *_: Any) -> Iterator[Place]:
    yield index, x.numel(), True


def _rows(weight: Tensor, index: Tensor, *_: Any) -> Iterator[Place]:
    yield index, weight.shape[0], False


LOOKUPS: dict[Any, Callable[..., Iterator[Place]]] = {
    aten.index: _parts,
    aten.index_put: _parts,
    **dict.fromkeys(
        (aten.gather, aten.index_select, aten.index_add, aten.index_copy, aten.index_reduce), _along
    ),
    **dict.fromkeys((aten.scatter, aten.scatter_add, aten.scatter_reduce), _along),
    aten.index_fill: _fill,
    **dict.fromkeys((aten.take, aten.put), _elements),
    aten.embedding: _rows,
}


def in_range(place: Place) -> Tensor:
    numbers, size, from_end = place
    return (numbers >= (-size if from_end else 0)) & (numbers < size)
