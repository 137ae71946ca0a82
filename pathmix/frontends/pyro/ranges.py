"""Ranges: the numbers by which a program looks up parts of a tensor, and those that PyTorch takes there.

With others PyTorch raises an error, and a run that fails is left out. The density, in JAX, would go on with
the nearest part that there is.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from pathmix.doors.torch import functorch_level
from pathmix.frontends.pyro.tape import is_open


class Lookup(NamedTuple):
    """Where among its arguments a function has the tensor, the numbers and, if it takes one, the axis."""

    numbers: tuple[int, str]
    dim: tuple[int, str] | int | None = None  # or which one it is; none where all elements are in one row
    tensor: tuple[int, str] = (0, "input")
    from_end: bool = False  # numbers below zero count from the end


def in_range(func: Any, args: Any, kwargs: Any) -> Iterator[Tensor]:
    """Of each index that depends on values which are not known: whether its numbers are in range."""
    if functorch_level() is not None:
        return
    lookup = LOOKUPS[func]
    tensor, index = _argument(lookup.tensor, args, kwargs), _argument(lookup.numbers, args, kwargs)
    dim = _argument(lookup.dim, args, kwargs) if isinstance(lookup.dim, tuple) else lookup.dim
    if func in _BY_PARTS:
        indices = list(_parts(tensor, tuple(index) if func in _PUTS else index))
    elif func in _TAKES_ALONG and dim is not None:
        return  # numbers start again at the end of the axis
    else:
        indices = [(index, tensor.numel() if dim is None or not tensor.ndim else tensor.shape[dim])]
    for index, size in indices:
        if isinstance(index, Tensor) and _is_whole(index) and is_open(index):
            yield (index >= (-size if lookup.from_end else 0)) & (index < size)


def _argument(place: tuple[int, str], args: Any, kwargs: Any) -> Any:
    position, name = place
    return args[position] if position < len(args) else kwargs.get(name)


def _is_whole(index: Tensor) -> bool:
    return not index.is_floating_point() and index.dtype is not torch.bool


def _parts(tensor: Tensor, index: Any) -> Iterator[tuple[Any, int]]:
    """The parts of `tensor[index]` that are for one axis, and its size."""
    parts = index if isinstance(index, tuple) else (index,)
    axes = [_axes(part) for part in parts]
    dim = 0
    for part, taken in zip(parts, axes, strict=True):
        if part is ...:
            dim += tensor.ndim - sum(axes)
        elif taken == 1:
            yield part, tensor.shape[dim]
        dim += taken


def _axes(part: Any) -> int:
    """How many axes a part of an index is for."""
    if part is None or part is ... or isinstance(part, bool):
        return 0
    return part.ndim if isinstance(part, Tensor) and part.dtype is torch.bool else 1


_PUTS = dict.fromkeys(
    (torch.index_put, Tensor.index_put, Tensor.index_put_), Lookup((1, "indices"), from_end=True)
)
_BY_PARTS = _PUTS | dict.fromkeys(
    (Tensor.__getitem__, Tensor.__setitem__), Lookup((1, "index"), from_end=True)
)
_TAKES_ALONG = dict.fromkeys(
    (torch.take_along_dim, Tensor.take_along_dim), Lookup((1, "indices"), (2, "dim"))
)
_ALONG = [
    "gather", "index_select", "index_fill", "index_add", "index_copy", "index_reduce", "scatter",
    "scatter_add", "scatter_reduce",
]  # fmt: skip
LOOKUPS = {
    **_BY_PARTS,
    **_TAKES_ALONG,
    **{
        getattr(place, name): Lookup((2, "index"), (1, "dim"), from_end=base == "index_fill")
        for place in (torch, Tensor)
        for base in _ALONG
        for name in (base, f"{base}_")
        if hasattr(place, name)
    },
    **dict.fromkeys((torch.take, Tensor.take), Lookup((1, "index"), from_end=True)),
    torch.nn.functional.embedding: Lookup((0, "input"), 0, (1, "weight")),
    torch.embedding: Lookup((1, "indices"), 0, (0, "weight")),
}
