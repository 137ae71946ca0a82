"""The front end for Pyro programs."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch

from pathmix.frontends.pyro.explore import explore as explore
from pathmix.frontends.pyro.flatten import flatten
from pathmix.frontends.pyro.guide import PyroGuide
from pathmix.frontends.pyro.replay import repeats as repeats
from pathmix.frontends.pyro.replay import replay as replay

as_guide = PyroGuide
make_array = torch.as_tensor


def adapt(arguments: Any) -> Any:
    """Arrays as copies, which the program may write into, and tensors in the precision of the engine."""
    dtype = torch.float64 if jnp.result_type(float) == jnp.float64 else torch.float32

    def adapted(leaf: Any) -> Any:
        if isinstance(leaf, np.ndarray):
            return leaf.copy()
        if not isinstance(leaf, torch.Tensor):
            return leaf
        usual = leaf.dtype in (torch.float32, torch.float64)
        return leaf.detach().to(dtype if usual else leaf.dtype, copy=True)

    return jax.tree.map(adapted, arguments)


def prepare() -> None:
    """Let PyTorch load its compiler, as it does when it first traces."""
    flatten(lambda value: [value + 1], [torch.zeros(())])
