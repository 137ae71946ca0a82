"""Operations on tensors of different precision, of which PyTorch refuses some."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.nn import RNNBase

from pathmix.frontends.pyro.tape import replaced, tensors_in


def in_one_precision(func: Any, args: Any, kwargs: Any) -> Any:
    """Run an operation. Where it refuses a mixture of precisions, take the higher one.

    Random values come in the engine's precision; data and networks may be in another, and matrix
    products, unlike arithmetic, do not promote.
    """
    try:
        return func(*args, **kwargs)
    except RuntimeError:
        reals = [t for t in tensors_in((*args, *kwargs.values())) if t.is_floating_point()]
        if len({tensor.dtype for tensor in reals}) < 2:
            raise
        writes = func is Tensor.__setitem__ or getattr(func, "__name__", "").endswith("_")
        dtype = reals[0].dtype if writes else torch.float64

        def cast(tensor: Tensor) -> Tensor:
            return tensor.to(dtype) if tensor.is_floating_point() else tensor

        first = args[:1] if writes else replaced(args[:1], Tensor, cast)
        return func(*first, *replaced(args[1:], Tensor, cast), **replaced(kwargs, Tensor, cast))


@contextmanager
def recurrent_in_one_precision() -> Iterator[None]:
    """Recurrent networks take what is of another precision than their weights, as other layers do."""
    strict = RNNBase.check_input

    def check_input(self: RNNBase, input: Tensor, batch_sizes: Tensor | None) -> None:
        dtype = next(self.parameters()).dtype
        strict(self, torch.empty(input.shape, dtype=dtype, device="meta"), batch_sizes)

    RNNBase.check_input = check_input
    try:
        yield
    finally:
        RNNBase.check_input = strict
