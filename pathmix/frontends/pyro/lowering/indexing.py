"""Operations that read and write parts of a tensor."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch

aten: Any = torch.ops.aten


def _places(indices: Any) -> tuple[Any, ...]:
    return tuple(slice(None) if index is None else index for index in indices)


def _index(x: Any, indices: Any) -> Any:
    places = _places(indices)
    known = not any(isinstance(place, jax.Array) for place in places)
    return (x if known else jnp.asarray(x))[places]


def _index_put(x: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    x, values = jnp.asarray(x), jnp.asarray(values, x.dtype)
    *before, last = indices
    if last.dtype == jnp.bool_ and all(index is None for index in before):
        after = x.ndim - len(before) - last.ndim
        lead, trail = values.shape[: -after - 1], values.shape[max(0, values.ndim - after) :]
        if values.size == math.prod(lead) * math.prod(trail):  # the same at every place of the mask
            values = jnp.reshape(values, (*lead, *(1,) * last.ndim, *trail))
            mask = jnp.reshape(last, (*last.shape, *(1,) * after))
            return jnp.where(mask, x + values if accumulate else values, x)
    where = x.at[_places(indices)]
    return where.add(values) if accumulate else where.set(values)


def _masked_select(x: Any, mask: Any) -> Any:
    """Only with a known mask, which is not an array of JAX."""
    shape = np.broadcast_shapes(x.shape, mask.shape)
    chosen = np.broadcast_to(mask, shape) if isinstance(mask, np.ndarray) else jnp.broadcast_to(mask, shape)
    return jnp.broadcast_to(x, shape)[chosen]


def _masked_scatter(x: Any, mask: Any, source: Any) -> Any:
    """The elements of the source in order, where the mask is true."""
    shape = jnp.broadcast_shapes(x.shape, mask.shape)
    mask = jnp.broadcast_to(mask, shape)
    order = jnp.reshape(jnp.cumsum(mask), shape) - 1
    return jnp.where(mask, jnp.ravel(source)[order], x)


def _along(x: Any, dim: int, index: Any) -> tuple[Any, ...]:
    """Places of a gather or scatter: along one axis by the index, along the others in order."""
    axes = np.ogrid[tuple(slice(size) for size in index.shape)]
    return tuple(index if axis == dim % x.ndim else places for axis, places in enumerate(axes))


def _gather(x: Any, dim: int, index: Any, *, sparse_grad: bool = False) -> Any:
    del sparse_grad
    return x[_along(x, dim, index)] if x.ndim else x


def _scatter(x: Any, dim: int, index: Any, source: Any) -> Any:
    return x.at[_along(x, dim, index)].set(_fitting(source, index, x))


def _scatter_add(x: Any, dim: int, index: Any, source: Any) -> Any:
    return x.at[_along(x, dim, index)].add(_fitting(source, index, x))


def _fitting(source: Any, index: Any, x: Any) -> Any:
    source = jnp.asarray(source, x.dtype)
    return source[tuple(slice(size) for size in index.shape)] if source.ndim else source


def _select_scatter(x: Any, source: Any, dim: int, index: int) -> Any:
    start = index + x.shape[dim] if index < 0 else index
    update = jnp.expand_dims(source.astype(x.dtype), dim)
    return _written(x, update, dim, start)


def _slice_scatter(
    x: Any, source: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Any:
    begin, stop, stride = slice(start, end, step).indices(x.shape[dim])
    source = source.astype(x.dtype)
    if stride == 1:
        return source if source.shape == x.shape else _written(x, source, dim, begin)
    where = [slice(None)] * x.ndim
    where[dim] = slice(begin, stop, stride)
    return x.at[tuple(where)].set(source)


def _written(x: Any, update: Any, dim: int, start: int) -> Any:
    """Write by joining the parts: unlike an update in place, this can be fused and read through."""
    stop = start + update.shape[dim]
    before = jax.lax.slice_in_dim(x, 0, start, axis=dim)
    after = jax.lax.slice_in_dim(x, stop, x.shape[dim], axis=dim)
    parts = [part for part in (before, update, after) if part.shape[dim]]
    return jnp.concatenate(parts, axis=dim) if len(parts) > 1 else parts[0]


def _diagonal_scatter(x: Any, source: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    moved = jnp.moveaxis(x, (dim1, dim2), (-2, -1))
    position = np.arange(source.shape[-1])
    rows, columns = position + max(0, -offset), position + max(0, offset)
    written = moved.at[..., rows, columns].set(source.astype(x.dtype))
    return jnp.moveaxis(written, (-2, -1), (dim1, dim2))


def _embedding(
    weight: Any, index: Any, padding: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False
) -> Any:
    del scale_grad_by_freq, sparse
    if padding >= 0:  # a row that is not trained
        weight = weight.at[padding].set(jax.lax.stop_gradient(weight[padding]))
    return weight[index]


TABLE = {
    aten.index.Tensor: _index,
    aten._unsafe_index.Tensor: _index,
    aten.index_put.default: _index_put,
    aten._unsafe_index_put.default: _index_put,
    aten.masked_select.default: _masked_select,
    aten.masked_scatter.default: _masked_scatter,
    aten.index_select.default: lambda x, dim, index: jnp.take(x, index, axis=dim, mode="clip"),
    aten.gather.default: _gather,
    aten.take.default: lambda x, index: jnp.ravel(x)[index],
    aten.scatter.src: _scatter,
    aten.scatter.value: _scatter,
    aten.scatter_add.default: _scatter_add,
    aten.select_scatter.default: _select_scatter,
    aten.slice_scatter.default: _slice_scatter,
    aten.diagonal_scatter.default: _diagonal_scatter,
    aten.embedding.default: _embedding,
}

# What selects by a mask. With a random mask, the shape of the result would be random.
MASKED = {
    aten.index.Tensor,
    aten._unsafe_index.Tensor,
    aten.index_put.default,
    aten._unsafe_index_put.default,
    aten.masked_select.default,
}
