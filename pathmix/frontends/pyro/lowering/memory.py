"""Operations on where elements lie in memory, known while the program runs and not afterwards, and on what
is written over there.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from pathmix.errors import ProgramError

aten: Any = torch.ops.aten


def _as_strided(
    x: torch.Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> torch.Tensor:
    """The same elements, by their number among those of the tensor."""
    own = int(x.storage_offset())
    begin = own if storage_offset is None else storage_offset
    there = _places(x.shape, x.stride(), own).reshape(-1)
    wanted = _places(size, stride, begin)
    numbers = {int(place): number for number, place in enumerate(there)}
    if not numbers.keys() >= set(wanted.reshape(-1).tolist()):
        raise ProgramError(
            "torch.as_strided reads elements that are not in its tensor, but in another one with which that "
            "shares its memory. Take it of the other one."
        )
    index = torch.from_numpy(np.array([numbers[int(place)] for place in wanted.reshape(-1)], np.int64))
    return x.reshape(-1)[index].reshape(tuple(size))


def _places(size: Sequence[int], stride: Sequence[int], begin: int) -> np.ndarray:
    steps = [np.arange(length) * step for length, step in zip(size, stride, strict=True)]
    return begin + sum(np.meshgrid(*steps, indexing="ij"), start=np.zeros(tuple(size), np.int64))


def _copy(x: torch.Tensor, source: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    """What is written over is gone: the first weights of a network, which are drawn."""
    del non_blocking
    return source.to(x.dtype).expand(x.shape)


def _slice_scatter(
    x: torch.Tensor, source: torch.Tensor, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Any:
    is_whole = slice(start, end, step).indices(x.shape[dim]) == (0, x.shape[dim], 1)
    return _copy(x, source) if is_whole else NotImplemented


RULES = {
    aten.as_strided.default: _as_strided,
    aten.copy.default: _copy,
    aten.slice_scatter.default: _slice_scatter,
}
