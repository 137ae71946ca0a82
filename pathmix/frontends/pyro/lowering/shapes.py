"""Operations that rearrange a tensor without computing anything."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch

aten: Any = torch.ops.aten


def _reshape(x: Any, shape: Any) -> Any:
    return jnp.reshape(x, tuple(shape))


def _expand(x: Any, size: Any, *, implicit: bool = False) -> Any:
    del implicit
    lead = len(size) - x.ndim
    shape = [x.shape[i - lead] if length == -1 else length for i, length in enumerate(size)]
    return jnp.broadcast_to(x, tuple(shape))


def _squeeze(x: Any, dim: Any = None) -> Any:
    if dim is None:
        return jnp.squeeze(x)
    axes = [axis % max(x.ndim, 1) for axis in (dim if isinstance(dim, (list, tuple)) else [dim])]
    return jnp.squeeze(x, tuple(axis for axis in axes if x.ndim and x.shape[axis] == 1))


def _transpose(x: Any, first: int, second: int) -> Any:
    return jnp.swapaxes(x, first, second) if x.ndim else x


def _slice(x: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    size = x.shape[dim]
    begin, stop, stride = slice(start, end, step).indices(size)
    return jax.lax.slice_in_dim(x, begin, max(begin, stop), stride, axis=dim)


def _select(x: Any, dim: int, index: int) -> Any:
    index = index + x.shape[dim] if index < 0 else index
    return jnp.squeeze(jax.lax.slice_in_dim(x, index, index + 1, axis=dim), dim)


def _split(x: Any, size: Any, dim: int = 0) -> Any:
    sizes = size if isinstance(size, (list, tuple)) else _equal_parts(x.shape[dim], size)
    return jnp.split(x, list(np.cumsum(sizes)[:-1]), axis=dim)


def _equal_parts(total: int, size: int) -> list[int]:
    return [min(size, total - start) for start in range(0, total, size)] or [0]


def _unbind(x: Any, dim: int = 0) -> Any:
    return [_select(x, dim, index) for index in range(x.shape[dim])]


def _cat(tensors: Any, dim: int = 0) -> Any:
    kept = [tensor for tensor in tensors if tensor.shape != (0,)] or tensors[:1]
    return jnp.concatenate(kept, axis=dim)


def _repeat(x: Any, repeats: Any) -> Any:
    return jnp.tile(x, tuple(repeats))


def _diagonal(x: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    return jnp.diagonal(x, offset, dim1, dim2)


def _diag_embed(x: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    size = x.shape[-1] + abs(offset)
    position = np.arange(x.shape[-1])
    rows, columns = position + max(0, -offset), position + max(0, offset)
    matrix = jnp.zeros((*x.shape[:-1], size, size), x.dtype).at[..., rows, columns].set(x)
    return jnp.moveaxis(matrix, (-2, -1), (dim1, dim2))


def _pad(x: Any, padding: Any, value: Any = 0.0) -> Any:
    """Pairs of widths, last axis first; a negative width cuts off."""
    widths = [(0, 0, 0)] * x.ndim
    for position in range(len(padding) // 2):
        widths[x.ndim - 1 - position] = (padding[2 * position], padding[2 * position + 1], 0)
    return jax.lax.pad(x, jnp.asarray(value, x.dtype), widths)


def _roll(x: Any, shifts: Any, dims: Any = ()) -> Any:
    return jnp.roll(x, tuple(shifts), tuple(dims)) if dims else jnp.roll(x, shifts[0])


def _unfold(x: Any, dim: int, size: int, step: int) -> Any:
    starts = np.arange(0, x.shape[dim] - size + 1, step)
    windows = jnp.take(x, starts[:, None] + np.arange(size), axis=dim)
    return jnp.moveaxis(windows, dim % x.ndim + 1, -1)


TABLE = {
    aten.view.default: _reshape,
    aten._unsafe_view.default: _reshape,
    aten._reshape_alias.default: lambda x, shape, _: _reshape(x, shape),
    aten.expand.default: _expand,
    aten.expand_copy.default: _expand,
    aten.permute.default: lambda x, dims: jnp.transpose(x, tuple(dims)),
    aten.t.default: jnp.transpose,
    aten.transpose.int: _transpose,
    aten.unsqueeze.default: jnp.expand_dims,
    aten.squeeze.default: _squeeze,
    aten.squeeze.dim: _squeeze,
    aten.squeeze.dims: _squeeze,
    aten.slice.Tensor: _slice,
    aten.select.int: _select,
    aten.split.Tensor: _split,
    aten.split_with_sizes.default: _split,
    aten.unbind.int: _unbind,
    aten.cat.default: _cat,
    aten.stack.default: lambda tensors, dim=0: jnp.stack(tensors, axis=dim),
    aten.repeat.default: _repeat,
    aten.flip.default: lambda x, dims: jnp.flip(x, tuple(dims)),
    aten.roll.default: _roll,
    aten.diagonal.default: _diagonal,
    aten.diag_embed.default: _diag_embed,
    aten.tril.default: jnp.tril,
    aten.triu.default: jnp.triu,
    aten.constant_pad_nd.default: _pad,
    aten.unfold.default: _unfold,
}
