"""Fourier transforms."""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
import torch

aten: Any = torch.ops.aten


def _scaled(x: Any, normalization: int, count: int) -> Any:
    """PyTorch says what to divide a plain sum by: nothing, the root of the number of terms, or the number."""
    return x / {0: 1, 1: np.sqrt(count), 2: count}[normalization]


def _plain(x: Any, dim: Sequence[int], forward: bool) -> Any:
    return jnp.fft.fftn(x, axes=dim) if forward else jnp.fft.ifftn(x, axes=dim, norm="forward")


def _complex(x: Any, dim: Sequence[int], normalization: int, forward: bool) -> Any:
    count = int(np.prod([x.shape[axis] for axis in dim]))
    return _scaled(_plain(x, dim, forward), normalization, count)


def _of_real(x: Any, dim: Sequence[int], normalization: int, onesided: bool) -> Any:
    if not onesided:
        return _complex(x, dim, normalization, True)
    count = int(np.prod([x.shape[axis] for axis in dim]))
    return _scaled(jnp.fft.rfftn(x, axes=dim), normalization, count)


def _to_real(x: Any, dim: Sequence[int], normalization: int, last_dim_size: int) -> Any:
    sizes = [*(x.shape[axis] for axis in dim[:-1]), last_dim_size]
    found = jnp.fft.irfftn(x, sizes, axes=dim, norm="forward")
    return _scaled(found, normalization, int(np.prod(sizes)))


TABLE = {
    aten._fft_r2c.default: _of_real,
    aten._fft_c2r.default: _to_real,
    aten._fft_c2c.default: _complex,
}
