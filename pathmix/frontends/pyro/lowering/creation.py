"""Operations that make a new tensor."""

from typing import Any

import jax.numpy as jnp
import torch

aten: Any = torch.ops.aten


def _like(value: Any) -> Any:
    return lambda x, *, dtype=None: jnp.full(x.shape, value, dtype=dtype or x.dtype)


def _new(value: Any) -> Any:
    return lambda x, size, *, dtype=None: jnp.full(tuple(size), value, dtype=dtype or x.dtype)


TABLE = {
    aten.zeros_like.default: _like(0),
    aten.ones_like.default: _like(1),
    aten.empty_like.default: _like(0),
    aten.full_like.default: lambda x, value, *, dtype=None: jnp.full(x.shape, value, dtype=dtype or x.dtype),
    aten.new_zeros.default: _new(0),
    aten.new_ones.default: _new(1),
    aten.new_empty.default: _new(0),
    aten.new_full.default: (
        lambda x, size, value, *, dtype=None: jnp.full(tuple(size), value, dtype=dtype or x.dtype)
    ),
    aten.fill.Scalar: lambda x, value: jnp.full(x.shape, value, dtype=x.dtype),
    aten.fill.Tensor: lambda x, value: jnp.full(x.shape, value, dtype=x.dtype),
}
