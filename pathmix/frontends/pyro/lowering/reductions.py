"""Operations that gather a tensor along some of its axes."""

from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.special as jsp
import torch

from pathmix.frontends.pyro.lowering.dtypes import engine_dtype

aten: Any = torch.ops.aten


def _axes(x: Any, dim: Any) -> Any:
    """No axes given means all of them; a tensor without axes has none to give."""
    if dim is None or x.ndim == 0 or (isinstance(dim, (list, tuple)) and not dim):
        return None
    return tuple(dim) if isinstance(dim, (list, tuple)) else dim


def _over(function: Any) -> Any:
    def lowering(x: Any, dim: Any = None, keepdim: bool = False, **options: Any) -> Any:
        return function(x, axis=_axes(x, dim), keepdims=keepdim, **options)

    return lowering


def _variance(x: Any, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> Any:
    return jnp.var(x, axis=_axes(x, dim), ddof=1 if correction is None else correction, keepdims=keepdim)


def _deviation(x: Any, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> Any:
    return _flat_at_zero(jnp.sqrt, _variance(x, dim, correction=correction, keepdim=keepdim))


def _variance_and_mean(x: Any, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> Any:
    mean = jnp.mean(x, axis=_axes(x, dim), keepdims=keepdim)
    return _variance(x, dim, correction=correction, keepdim=keepdim), mean


def _layer_norm(x: Any, shape: Any, weight: Any, bias: Any, eps: float) -> Any:
    axes = tuple(range(-len(shape), 0))
    mean = jnp.mean(x, axis=axes, keepdims=True)
    scale = jax.lax.rsqrt(jnp.var(x, axis=axes, keepdims=True) + eps)
    result = (x - mean) * scale
    result = result if weight is None else result * weight
    return result if bias is None else result + bias, mean, scale


def _flat_at_zero(function: Any, x: Any) -> Any:
    """A root, with derivative zero at zero instead of infinity."""
    return jnp.where(x == 0, 0.0, function(jnp.where(x == 0, 1.0, x)))


def _extreme(where: Any) -> Any:
    def lowering(x: Any, dim: int, keepdim: bool = False) -> Any:
        if x.ndim == 0:
            return x, jnp.zeros((), int)
        index = where(x, axis=dim, keepdims=True)
        values = jnp.take_along_axis(x, index, axis=dim)
        return (values, index) if keepdim else (jnp.squeeze(values, dim), jnp.squeeze(index, dim))

    return lowering


def _cumulative(function: Any) -> Any:
    def lowering(x: Any, dim: int, *, dtype: Any = None) -> Any:
        if dtype is None and not jnp.issubdtype(x.dtype, jnp.inexact):
            dtype = engine_dtype("i")  # small ones would wrap around
        return x if x.ndim == 0 else function(x, axis=dim, dtype=dtype)

    return lowering


def _running(extreme: Any, reaches: Any) -> Any:
    """The extreme so far, and where it was last reached."""

    def lowering(x: Any, dim: int) -> Any:
        if x.ndim == 0:
            return x, jnp.zeros((), int)
        axis = dim % x.ndim
        places = jax.lax.broadcasted_iota(int, x.shape, axis)
        index = jax.lax.cummax(jnp.where(reaches(x, extreme(x, axis)), places, 0), axis)
        return jnp.take_along_axis(x, index, axis=axis), index

    return lowering


def _logcumsumexp(x: Any, dim: int) -> Any:
    return x if x.ndim == 0 else jax.lax.associative_scan(jnp.logaddexp, x, axis=dim)


def _softmax(x: Any, dim: int, half_to_float: bool) -> Any:
    del half_to_float
    return jax.nn.softmax(x, axis=_axes(x, dim))


def _log_softmax(x: Any, dim: int, half_to_float: bool) -> Any:
    del half_to_float
    return jax.nn.log_softmax(x, axis=_axes(x, dim))


def _norm(x: Any, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """PyTorch takes all derivatives at zero to be zero."""
    del dtype
    axes = _axes(x, dim)
    if ord == 0:
        return jnp.sum(x != 0, axis=axes, keepdims=keepdim)
    size = x * jnp.sign(x)
    if ord in (float("inf"), float("-inf")):
        return (jnp.max if ord > 0 else jnp.min)(size, axis=axes, keepdims=keepdim)
    if ord == 1:
        return jnp.sum(size, axis=axes, keepdims=keepdim)
    if ord == 2:
        return _flat_at_zero(jnp.sqrt, jnp.sum(jnp.square(x), axis=axes, keepdims=keepdim))
    powers = _flat_at_zero(lambda y: y**ord, size)
    return _flat_at_zero(lambda y: y ** (1 / ord), jnp.sum(powers, axis=axes, keepdims=keepdim))


def _sort(x: Any, dim: int = -1, descending: bool = False, *, stable: Any = None) -> Any:
    del stable  # always
    if x.ndim == 0:
        return x, jnp.zeros((), int)
    order = jnp.argsort(x, axis=dim, descending=descending, stable=True)
    return jnp.take_along_axis(x, order, axis=dim), order


def _topk(x: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    del sorted  # always
    values, order = _sort(x, dim, largest)
    if x.ndim == 0:
        return values, order
    return tuple(jax.lax.slice_in_dim(part, 0, k, axis=dim) for part in (values, order))


def _kth_value(x: Any, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    if x.ndim == 0:
        return x, jnp.zeros((), int)
    values, order = (jax.lax.slice_in_dim(part, k - 1, k, axis=dim % x.ndim) for part in _sort(x, dim))
    return (values, order) if keepdim else (jnp.squeeze(values, dim), jnp.squeeze(order, dim))


def _median(x: Any, dim: int, keepdim: bool = False) -> Any:
    """The lower one of two; where any number is missing, so is the median."""
    if x.ndim == 0:
        return x, jnp.zeros((), int)
    values, order = _kth_value(x, (x.shape[dim] + 1) // 2, dim, keepdim)
    missing = jnp.any(jnp.isnan(x), axis=dim, keepdims=keepdim)
    first = jnp.argmax(jnp.isnan(x), axis=dim, keepdims=keepdim)
    return jnp.where(missing, jnp.nan, values), jnp.where(missing, first, order)


def _distances(x: Any, y: Any, p: float, compute_mode: Any) -> Any:
    """Between all rows of the one and all rows of the other."""
    del compute_mode
    return _norm(x[..., :, None, :] - y[..., None, :, :], p, [-1])


def _rank(sequence: Any, x: Any, right: bool) -> Any:
    """How many elements of a sorted sequence come before each."""
    before = jnp.less_equal if right else jnp.less
    return jnp.sum(before(sequence[..., None, :], x[..., None]), axis=-1)


def _searchsorted(
    sequence: Any,
    x: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: Any = None,
    sorter: Any = None,
) -> Any:
    del out_int32
    if sorter is not None:
        sequence = jnp.take_along_axis(sequence, sorter, axis=-1)
    flat = x if sequence.ndim > 1 else jnp.ravel(x)
    return jnp.reshape(_rank(sequence, flat, right or side == "right"), x.shape)


def _bucketize(x: Any, boundaries: Any, *, out_int32: bool = False, right: bool = False) -> Any:
    return _searchsorted(boundaries, x, out_int32=out_int32, right=right)


TABLE = {
    aten.sum.default: _over(jnp.sum),
    aten.sum.dim_IntList: _over(jnp.sum),
    aten.mean.default: _over(jnp.mean),
    aten.mean.dim: _over(jnp.mean),
    aten.prod.default: _over(jnp.prod),
    aten.prod.dim_int: _over(jnp.prod),
    aten.var.correction: _variance,
    aten.std.correction: _deviation,
    aten.var_mean.correction: _variance_and_mean,
    aten.native_layer_norm.default: _layer_norm,
    aten.logsumexp.default: _over(jsp.logsumexp),
    aten.max.default: jnp.max,
    aten.min.default: jnp.min,
    aten.max.dim: _extreme(jnp.argmax),
    aten.min.dim: _extreme(jnp.argmin),
    aten.amax.default: _over(jnp.max),
    aten.amin.default: _over(jnp.min),
    aten.argmax.default: _over(jnp.argmax),
    aten.argmin.default: _over(jnp.argmin),
    aten.any.default: jnp.any,
    aten.any.dim: _over(jnp.any),
    aten.any.dims: _over(jnp.any),
    aten.all.default: jnp.all,
    aten.all.dim: _over(jnp.all),
    aten.all.dims: _over(jnp.all),
    aten.cumsum.default: _cumulative(jnp.cumsum),
    aten.cumprod.default: _cumulative(jnp.cumprod),
    aten.cummax.default: _running(jax.lax.cummax, jnp.greater_equal),
    aten.cummin.default: _running(jax.lax.cummin, jnp.less_equal),
    aten.median.default: lambda x: _median(jnp.ravel(x), 0)[0],
    aten.median.dim: _median,
    aten.kthvalue.default: _kth_value,
    aten.logcumsumexp.default: _logcumsumexp,
    aten._softmax.default: _softmax,
    aten._log_softmax.default: _log_softmax,
    aten.linalg_vector_norm.default: _norm,
    aten._cdist_forward.default: _distances,
    aten.searchsorted.Tensor: _searchsorted,
    aten.bucketize.Tensor: _bucketize,
    aten.topk.default: _topk,
    aten.sort.default: _sort,
    aten.sort.stable: _sort,
}
