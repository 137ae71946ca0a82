"""Operations on each element."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch

from pathmix.frontends.pyro.lowering.dtypes import as_float, on_floats

aten: Any = torch.ops.aten


def _direct(plain: Callable[..., Any], general: Callable[..., Any]) -> Callable[..., Any]:
    """Floats of one shape, and numbers, need nothing of what `jax.numpy` does first, which takes longer."""

    def lowering(*operands: Any) -> Any:
        alike = _alike(operands)
        return general(*operands) if alike is None else plain(*alike)

    return lowering


def _alike(operands: tuple[Any, ...]) -> list[Any] | None:
    """Operands of one type and shape, or without axes; None if they are not."""
    arrays = [operand for operand in operands if isinstance(operand, jax.Array)]
    if not arrays or arrays[0].dtype not in _FLOATS:
        return None
    dtype, shapes = arrays[0].dtype, {array.shape for array in arrays} - {()}
    if len(shapes) > 1 or any(array.dtype != dtype for array in arrays):
        return None
    if not all(isinstance(operand, jax.Array) or type(operand) in (int, float) for operand in operands):
        return None
    return [x if isinstance(x, jax.Array) else np.asarray(x, dtype) for x in operands]


_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
_plus, _minus = _direct(jax.lax.add, jnp.add), _direct(jax.lax.sub, jnp.subtract)
_times, _over = _direct(jax.lax.mul, jnp.multiply), _direct(jax.lax.div, on_floats(jnp.true_divide))


def _add(x: Any, y: Any, alpha: Any = 1) -> Any:
    return _plus(x, y if alpha == 1 else alpha * y)


def _sub(x: Any, y: Any, alpha: Any = 1) -> Any:
    return _minus(x, y if alpha == 1 else alpha * y)


def _rsub(x: Any, y: Any, alpha: Any = 1) -> Any:
    return _sub(y, x, alpha)


def _div(x: Any, y: Any, *, rounding_mode: str | None = None) -> Any:
    if rounding_mode is None:
        return _over(x, y)
    if rounding_mode == "floor":
        return jnp.floor_divide(x, y)
    return jnp.trunc(jnp.true_divide(x, y))


@jax.custom_jvp
def _magnitude(x: Any) -> Any:
    """At zero the derivative is zero; that of `jnp.abs` is one. (As x * sign(x), no region could read it.)"""
    return jnp.abs(x)


@_magnitude.defjvp
def _magnitude_jvp(primals: tuple[Any], tangents: tuple[Any]) -> tuple[Any, Any]:
    return _magnitude(*primals), tangents[0] * jnp.sign(*primals)


def _abs(x: Any) -> Any:
    return _magnitude(x) if jnp.issubdtype(x.dtype, jnp.floating) else jnp.abs(x)


def _sign(x: Any) -> Any:
    return x if x.dtype == jnp.bool_ else jnp.sign(x)


def _pow(x: Any, y: Any) -> Any:
    if isinstance(y, (int, float)):
        if isinstance(y, float):
            x = as_float(x)  # whole numbers would wrap around
        if float(y).is_integer() and abs(y) <= 8:
            return jax.lax.integer_pow(x, int(y)) if jnp.issubdtype(x.dtype, jnp.inexact) else x ** int(y)
    elif jnp.issubdtype(y.dtype, jnp.inexact):
        x = jnp.where((x == 0) & (y == 0), 1.0, x)  # the derivative there is zero; JAX gives nan
    return jnp.power(x, y)


def _clamp(x: Any, low: Any = None, high: Any = None) -> Any:
    """Inside the bounds, and on them, the derivative is one."""
    if low is not None:
        x = jnp.where(x < low, low, x)
    if high is not None:
        x = jnp.where(x > high, high, x)
    return x


def _leaky_relu(x: Any, slope: float = 0.01) -> Any:
    return jnp.where(x > 0, x, slope * x)


def _elu(x: Any, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Any:
    below = jnp.where(x > 0, 0.0, x)
    return jnp.where(x > 0, scale * x, scale * alpha * jnp.expm1(input_scale * below))


def _softplus(x: Any, beta: Any = 1, threshold: Any = 20) -> Any:
    scaled = x * beta
    return jnp.where(scaled > threshold, x, jnp.logaddexp(jnp.minimum(scaled, threshold), 0.0) / beta)


def _gelu(x: Any, *, approximate: str = "none") -> Any:
    return jax.nn.gelu(x, approximate=approximate == "tanh")


def _nan_to_num(x: Any, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    return jnp.nan_to_num(x, nan=nan or 0.0, posinf=posinf, neginf=neginf)


def _addcmul(x: Any, a: Any, b: Any, *, value: Any = 1) -> Any:
    return x + value * a * b


def _addcdiv(x: Any, a: Any, b: Any, *, value: Any = 1) -> Any:
    return x + value * a / b


def _masked_fill(x: Any, mask: Any, value: Any) -> Any:
    return jnp.where(mask, jnp.asarray(value, x.dtype), x)


def _to(x: Any, *, dtype: Any = None) -> Any:
    if dtype is None:
        return x
    if dtype in (jnp.uint8, jnp.int8, jnp.int16) and jnp.issubdtype(x.dtype, jnp.floating):
        x = x.astype(jnp.int32)  # PyTorch wraps around; JAX would stop at the ends of the type
    return x.astype(dtype)


def _identity(x: Any) -> Any:
    return x


# Whole numbers and truth values become floats first.
_OF_FLOATS = {
    # exponentials and powers
    aten.exp.default: _direct(jax.lax.exp, jnp.exp),
    aten.exp2.default: jnp.exp2,
    aten.expm1.default: _direct(jax.lax.expm1, jnp.expm1),
    aten.log.default: _direct(jax.lax.log, jnp.log),
    aten.log2.default: jnp.log2,
    aten.log10.default: jnp.log10,
    aten.log1p.default: _direct(jax.lax.log1p, jnp.log1p),
    aten.sqrt.default: _direct(jax.lax.sqrt, jnp.sqrt),
    aten.rsqrt.default: jax.lax.rsqrt,
    aten.logaddexp.default: jnp.logaddexp,
    aten.logaddexp2.default: jnp.logaddexp2,
    # trigonometry
    aten.sin.default: _direct(jax.lax.sin, jnp.sin),
    aten.cos.default: _direct(jax.lax.cos, jnp.cos),
    aten.tan.default: _direct(jax.lax.tan, jnp.tan),
    aten.asin.default: jnp.arcsin,
    aten.acos.default: jnp.arccos,
    aten.atan.default: _direct(jax.lax.atan, jnp.arctan),
    aten.atan2.default: jnp.arctan2,
    aten.sinh.default: _direct(jax.lax.sinh, jnp.sinh),
    aten.cosh.default: jnp.cosh,
    aten.tanh.default: _direct(jax.lax.tanh, jnp.tanh),
    aten.asinh.default: jnp.arcsinh,
    aten.acosh.default: jnp.arccosh,
    aten.atanh.default: jnp.arctanh,
    aten.hypot.default: jnp.hypot,
    # activations
    aten.sigmoid.default: jax.nn.sigmoid,
    aten.log_sigmoid_forward.default: lambda x: (jax.nn.log_sigmoid(x), jnp.zeros_like(x)),
    aten.softplus.default: _softplus,
    aten.leaky_relu.default: _leaky_relu,
    aten.elu.default: _elu,
    aten.gelu.default: _gelu,
    aten.silu.default: jax.nn.silu,
}

TABLE = {
    **{op: on_floats(function) for op, function in _OF_FLOATS.items()},
    # arithmetic
    aten.add.Tensor: _add,
    aten.add.Scalar: _add,
    aten.sub.Tensor: _sub,
    aten.sub.Scalar: _sub,
    aten.rsub.Tensor: _rsub,
    aten.rsub.Scalar: _rsub,
    aten.mul.Tensor: _times,
    aten.mul.Scalar: _times,
    aten.div.Tensor: _div,
    aten.div.Scalar: _div,
    aten.div.Tensor_mode: _div,
    aten.div.Scalar_mode: _div,
    aten.floor_divide.default: jnp.floor_divide,
    aten.remainder.Tensor: jnp.remainder,
    aten.remainder.Scalar: jnp.remainder,
    aten.remainder.Scalar_Tensor: jnp.remainder,
    aten.fmod.Tensor: jnp.fmod,
    aten.fmod.Scalar: jnp.fmod,
    aten.pow.Tensor_Tensor: _pow,
    aten.pow.Tensor_Scalar: _pow,
    aten.pow.Scalar: _pow,
    aten.neg.default: _direct(jax.lax.neg, jnp.negative),
    aten.abs.default: _abs,
    aten.sign.default: _sign,
    aten.sgn.default: _sign,
    aten.reciprocal.default: lambda x: 1 / x,
    aten.addcmul.default: _addcmul,
    aten.addcdiv.default: _addcdiv,
    aten.lerp.Scalar: lambda x, y, w: x + w * (y - x),
    aten.lerp.Tensor: lambda x, y, w: x + w * (y - x),
    aten.maximum.default: jnp.maximum,
    aten.minimum.default: jnp.minimum,
    aten.fmax.default: jnp.fmax,
    aten.fmin.default: jnp.fmin,
    aten.clamp.default: _clamp,
    aten.clamp.Tensor: _clamp,
    aten.clamp_min.default: _clamp,
    aten.clamp_min.Tensor: _clamp,
    aten.clamp_max.default: lambda x, high: _clamp(x, None, high),
    aten.clamp_max.Tensor: lambda x, high: _clamp(x, None, high),
    # rounding
    aten.floor.default: jnp.floor,
    aten.ceil.default: jnp.ceil,
    aten.trunc.default: jnp.trunc,
    aten.round.default: jnp.round,
    aten.round.decimals: lambda x, *, decimals: jnp.round(x, decimals),
    aten.frac.default: lambda x: x - jnp.trunc(x),
    aten.relu.default: lambda x: jnp.where(x <= 0, 0, x),  # NaN stays
    # comparisons and logic
    aten.eq.Tensor: _direct(jax.lax.eq, jnp.equal),
    aten.eq.Scalar: _direct(jax.lax.eq, jnp.equal),
    aten.ne.Tensor: _direct(jax.lax.ne, jnp.not_equal),
    aten.ne.Scalar: _direct(jax.lax.ne, jnp.not_equal),
    aten.lt.Tensor: _direct(jax.lax.lt, jnp.less),
    aten.lt.Scalar: _direct(jax.lax.lt, jnp.less),
    aten.le.Tensor: _direct(jax.lax.le, jnp.less_equal),
    aten.le.Scalar: _direct(jax.lax.le, jnp.less_equal),
    aten.gt.Tensor: _direct(jax.lax.gt, jnp.greater),
    aten.gt.Scalar: _direct(jax.lax.gt, jnp.greater),
    aten.ge.Tensor: _direct(jax.lax.ge, jnp.greater_equal),
    aten.ge.Scalar: _direct(jax.lax.ge, jnp.greater_equal),
    aten.logical_and.default: jnp.logical_and,
    aten.logical_or.default: jnp.logical_or,
    aten.logical_xor.default: jnp.logical_xor,
    aten.logical_not.default: jnp.logical_not,
    aten.bitwise_and.Tensor: jnp.bitwise_and,
    aten.bitwise_and.Scalar: jnp.bitwise_and,
    aten.bitwise_or.Tensor: jnp.bitwise_or,
    aten.bitwise_or.Scalar: jnp.bitwise_or,
    aten.bitwise_xor.Tensor: jnp.bitwise_xor,
    aten.bitwise_xor.Scalar: jnp.bitwise_xor,
    aten.bitwise_not.default: jnp.bitwise_not,
    aten.isnan.default: jnp.isnan,
    aten.isinf.default: jnp.isinf,
    aten.where.self: jnp.where,
    aten.masked_fill.Scalar: _masked_fill,
    aten.masked_fill.Tensor: _masked_fill,
    aten.nan_to_num.default: _nan_to_num,
    # copies and types
    aten._to_copy.default: _to,
    aten.clone.default: _identity,
    aten.alias.default: _identity,
    aten.detach.default: jax.lax.stop_gradient,
    aten.copysign.Tensor: jnp.copysign,
    aten.copysign.Scalar: jnp.copysign,
    aten.complex.default: lambda x, y: jax.lax.complex(*jnp.broadcast_arrays(x, y)),
    aten.view_as_real.default: lambda x: jnp.stack([jnp.real(x), jnp.imag(x)], axis=-1),
    aten.view_as_complex.default: lambda x: jax.lax.complex(x[..., 0], x[..., 1]),
}
