"""Influence: what continuous draws reach while a program runs, and whether they have had a say in its course.

Until they have, the run is settled by its discrete draws: another run with the same ones makes the same
statements about the same distributions. A continuous value has a say where it is looked at, where it gives
the number of elements or an index, where an operation checks it, and in the distribution of another site.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from pathmix.doors.torch import (
    DispatchMode,
    dispatch_depth,
    is_compiled,
    release,
    reserve,
    storage_id,
    without_torch_function,
)
from pathmix.frontends.pyro.tape import makes_shape, tensors_in


class Influence(DispatchMode):
    """While active, follows what the tensors that it is given reach. Views share what they hold.

    PyTorch takes as long to tell of operations as to do them. So it is asked from the first tensor on, and
    until the first say that they have, unless this is to go on.
    """

    def __init__(self, *, goes_on: bool = False) -> None:
        super().__init__()
        self.goes_on = goes_on
        self.has_say = self.is_paused = self._is_told = False
        self._reached: set[int] = set()  # storages

    def __enter__(self) -> "Influence":
        self._depth = dispatch_depth()
        if self.goes_on:
            self._listen()
        return self

    def __exit__(self, *error: Any) -> None:
        if self._is_told:
            super().__exit__(*error)
        while self._reached:
            release(self._reached.pop())

    @contextmanager
    def paused(self) -> Iterator[None]:
        """While something is drawn that nobody is going to use."""
        self.is_paused = True
        try:
            yield
        finally:
            self.is_paused = False

    def say(self) -> None:
        """There is no more to follow."""
        self.has_say = True
        if self._is_told and not self.goes_on and self._is_last(self._depth + 1):
            super().__exit__(None, None, None)
            self._is_told = False

    def add(self, tensor: torch.Tensor) -> None:
        with without_torch_function():
            storage = storage_id(tensor)
            if storage is None or not (self._is_told or self._listen()):
                self.say()  # what it reaches cannot be followed
            elif storage not in self._reached:
                reserve(tensor)
                self._reached.add(storage)

    def reaches(self, tensor: torch.Tensor) -> bool:
        if not self._reached:
            return False
        with without_torch_function():
            storage = storage_id(tensor)
        return storage is None or storage in self._reached

    def look(self, tensor: Any) -> None:
        """Something other than an operation reads a tensor."""
        if self.has_say or (isinstance(tensor, torch.Tensor) and self.reaches(tensor)):
            self.say()

    def _listen(self) -> bool:
        """Be told of operations, unless the program has a mode of its own, which it will end before this."""
        if self._is_last(self._depth) and (self.goes_on or not self.has_say):
            super().__enter__()
            self._is_told = True
        return self._is_told

    def _is_last(self, depth: int) -> bool:
        return dispatch_depth() == depth and not is_compiled()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        options = kwargs or {}
        with without_torch_function():
            result = func(*args, **options)
            if self.is_paused or not self._reached or (self.has_say and not self.goes_on):
                return result
            reached = [t for t in tensors_in((args, *options.values())) if self.reaches(t)]
            if reached:
                results = list(tensors_in([result]))
                self.has_say |= not results or any(map(_is_whole, reached)) or makes_shape(func)
                # What is written into is among the results.
                for tensor in results:
                    self.add(tensor)
            return result


def _is_whole(tensor: torch.Tensor) -> bool:
    """Whether a tensor can be an index."""
    kind = tensor.dtype
    return not kind.is_floating_point and not kind.is_complex and kind is not torch.bool
