"""PyTorch's types in JAX. Every float is one of the engine's precision, whatever the program says.

Whole numbers keep their type: the smaller ones wrap around.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import torch

from pathmix.doors.torch import original, without_modes, without_torch_function

_ENGINE = {
    kind: (np.dtype(single), np.dtype(double))
    for kind, single, double in (
        ("f", np.float32, np.float64),
        ("c", np.complex64, np.complex128),
        ("i", np.int32, np.int64),
    )
}
_SMALL = {torch.uint8: jnp.uint8, torch.int8: jnp.int8, torch.int16: jnp.int16, torch.int32: jnp.int32}


def as_jax_dtype(dtype: torch.dtype | None) -> Any:
    if dtype is None or dtype.is_floating_point:
        return engine_dtype("f")
    if dtype.is_complex:
        return engine_dtype("c")
    if dtype is torch.bool:
        return jnp.bool_
    return _SMALL.get(dtype) or engine_dtype("i")


def engine_dtype(kind: str) -> Any:
    """The type of floats (f), complex (c) or whole numbers (i) in the present precision."""
    return _ENGINE[kind][bool(getattr(jax.config, "jax_enable_x64"))]


def on_floats(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with its whole-number and truth-value arrays turned into floats of the engine."""

    def lowering(*arguments: Any, **options: Any) -> Any:
        return function(*(as_float(argument) for argument in arguments), **options)

    return lowering


def as_float(argument: Any) -> Any:
    if isinstance(argument, jax.Array) and not jnp.issubdtype(argument.dtype, jnp.inexact):
        return argument.astype(jnp.result_type(float))
    return argument


class Stored(NamedTuple):
    """A tensor as an array. What was expanded is stored once, and broadcast where it is used."""

    array: jax.Array
    shape: tuple[int, ...]

    def whole(self) -> jax.Array:
        return self.array if self.array.shape == self.shape else jnp.broadcast_to(self.array, self.shape)


def stored(value: torch.Tensor) -> Stored:
    """An array of its own: with one for equal numbers, structures would depend on which are equal."""
    return Stored(jnp.asarray(once(value), dtype=as_jax_dtype(value.dtype)), tuple(value.shape))


def once(value: torch.Tensor, *, copy: bool = True) -> np.ndarray:
    """A tensor's values; what was expanded has one element."""
    value = value.detach().resolve_conj().resolve_neg()
    repeated = [size > 1 and stride == 0 for size, stride in zip(value.shape, value.stride(), strict=True)]
    return as_numpy(value[tuple(slice(0, 1) if r else slice(None) for r in repeated)], copy=copy)


def as_numpy(value: Any, *, copy: bool = True) -> np.ndarray:
    """A tensor's values, or a number; types that NumPy lacks become float32."""
    if not isinstance(value, torch.Tensor):
        return np.array(value)
    with without_torch_function():
        if value.requires_grad or not value.is_cpu or value.dtype is torch.bfloat16:
            with without_modes():
                value = value.detach().cpu()
                value = value.float() if value.dtype is torch.bfloat16 else value
        return np.array(_numpy(value)) if copy else _numpy(value)


_numpy = original(torch.Tensor.numpy)  # where it can be answered, too


def as_engine(values: np.ndarray) -> np.ndarray:
    """In the types that JAX has in the present precision."""
    kind = values.dtype.kind
    return values.astype(engine_dtype(kind), copy=False) if kind in "if" else values
