"""Computed indices: `x[k]` where k is a tensor without axes.

PyTorch looks at such an index itself and takes its number. Where the number is continuous in origin
(`x[(3 * u).long()]`), the tensor must stay one: reading becomes `index_select`, writing `index_copy`. So must
a truth value that says whether anything is written (`x[x != x] = 0` of a single number).
"""

from typing import Any

import torch
from torch import Tensor


def has_computed(index: Any) -> bool:
    """Whether an index has parts without axes that are tensors, and no others that are arrays."""
    parts = index if isinstance(index, tuple) else (index,)
    computed = [_is_computed(part) for part in parts]
    plain = (part is None or part is ... or isinstance(part, (int, slice)) for part in parts)
    return any(computed) and all(a or b for a, b in zip(computed, plain, strict=True))


def read(tensor: Tensor, index: Any) -> Tensor:
    """`tensor[index]` with computed parts."""
    parts, places = _without_computed(tensor, index)
    result = tensor[parts]
    for dim, part in reversed(places):
        result = result.index_select(dim, _positions(part, result.shape[dim])).squeeze(dim)
    return result


def is_switch(index: Any) -> bool:
    """Whether an index is a single truth value."""
    return isinstance(index, Tensor) and index.dtype is torch.bool and index.ndim == 0


def write(tensor: Tensor, index: Any, value: Any) -> None:
    """`tensor[index] = value` with computed parts, or a switch."""
    if is_switch(index):
        tensor[...] = torch.where(index, torch.as_tensor(value, dtype=tensor.dtype), tensor)
        return
    parts, places = _without_computed(tensor, index)
    view = tensor[parts]
    chosen = torch.ones((), dtype=torch.bool)
    shape = list(view.shape)
    for dim, part in places:
        size = view.shape[dim]
        at = torch.zeros(size, dtype=torch.bool).index_fill(0, _positions(part, size), True)
        chosen = chosen & at.reshape([size if d == dim else 1 for d in range(view.ndim)])
        shape[dim] = 1
    given = torch.as_tensor(value, dtype=view.dtype)
    kept = [size for d, size in enumerate(shape) if d not in {dim for dim, _ in places}]
    tensor[parts] = torch.where(chosen, given.expand(kept).reshape(shape), view)


def _is_computed(part: Any) -> bool:
    whole = isinstance(part, Tensor) and not part.is_floating_point() and part.dtype is not torch.bool
    return whole and part.ndim == 0


def _positions(part: Tensor, size: int) -> Tensor:
    """From the front; those before the first count from the end."""
    return torch.where(part < 0, part + size, part).reshape(1).long()


def _without_computed(tensor: Tensor, index: Any) -> tuple[tuple[Any, ...], list[tuple[int, Tensor]]]:
    """The index with whole axes in place of computed parts, and where these axes end up."""
    parts = list(index) if isinstance(index, tuple) else [index]
    taken = sum(part is not None and part is not ... for part in parts)
    result, places, dim = [], [], 0
    for part in parts:
        if _is_computed(part):
            places.append((dim, part))
            part = slice(None)
        result.append(part)
        if part is ...:
            dim += tensor.ndim - taken
        elif not isinstance(part, int):
            dim += 1
    return tuple(result), places
