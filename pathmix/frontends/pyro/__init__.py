"""The front end for Pyro programs."""

from typing import Any

import jax
import jax.numpy as jnp
import torch

from pathmix.frontends.pyro.explore import explore as explore
from pathmix.frontends.pyro.replay import replay as replay


def adapt(arguments: Any) -> Any:
    """Tensors of the usual precisions in that of the engine, where everything random is."""
    dtype = torch.float64 if jnp.result_type(float) == jnp.float64 else torch.float32

    def adapted(leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor) and leaf.dtype in (torch.float32, torch.float64):
            return leaf.detach().to(dtype)
        return leaf

    return jax.tree.map(adapted, arguments)
