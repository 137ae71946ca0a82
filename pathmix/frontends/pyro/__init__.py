"""The front end for Pyro programs."""

from typing import Any

import jax
import numpy as np
import torch

from pathmix.frontends.pyro.explore import explore as explore
from pathmix.frontends.pyro.flatten import flatten
from pathmix.frontends.pyro.guide import PyroGuide
from pathmix.frontends.pyro.lowering.dtypes import engine_dtype
from pathmix.frontends.pyro.replay import repeats as repeats
from pathmix.frontends.pyro.replay import replay as replay

as_guide = PyroGuide
make_array = torch.as_tensor


def adapt(arguments: Any) -> Any:
    """Arrays as copies, which the program may write into, and tensors in the precision of the engine."""
    dtype = torch.float64 if engine_dtype("f") == np.float64 else torch.float32

    def adapted(leaf: Any) -> Any:
        if isinstance(leaf, np.ndarray):
            return leaf.copy()
        if not isinstance(leaf, torch.Tensor):
            return leaf
        usual = leaf.dtype in (torch.float32, torch.float64)
        return leaf.detach().to(dtype if usual else leaf.dtype, copy=True)

    def all_of(part: Any) -> Any:
        """Most have nothing but tuples of tensors and numbers, in which JAX takes longer to find them."""
        if isinstance(part, _LEAVES):
            return adapted(part)
        if type(part) is tuple:
            return tuple([all_of(inner) for inner in part])
        return jax.tree.map(adapted, part)

    return all_of(arguments)


_LEAVES = (torch.Tensor, np.ndarray, bool, int, float, str)


def prepare() -> None:
    """Let PyTorch load its compiler, as it does when it first traces."""
    flatten(lambda value: [value + 1], [torch.zeros(())])
