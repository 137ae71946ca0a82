"""Call a Python function from inside a compiled program."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_batching import sequential_vmap

from pathmix.doors.jax import ShapedArray, called_on_the_host

ArrayType = jax.ShapeDtypeStruct
Host = Callable[..., Sequence[np.ndarray]]


def call_host(function: Host, shapes: Sequence[ArrayType], *arrays: Any) -> list[Any]:
    """The function's results, of these shapes. Under `vmap` it is called for one element after another."""

    @sequential_vmap
    def call(*arrays: Any) -> list[Any]:
        words = _call(*arrays, function=function, shapes=tuple(shapes))
        return [_joined(word, shape) for word, shape in zip(words, shapes, strict=True)]

    return call(*arrays)


def _is_wide(shape: Any) -> bool:
    return np.dtype(shape.dtype).itemsize == 8


def _in_words(shape: ArrayType) -> Any:
    """Wide numbers travel as pairs of 32-bit words, which no thread rounds."""
    if not _is_wide(shape):
        return ShapedArray(shape.shape, shape.dtype)
    return ShapedArray((*shape.shape, 2), jnp.uint32)


def _split(value: np.ndarray, shape: ArrayType) -> np.ndarray:
    value = np.ascontiguousarray(value, dtype=shape.dtype)
    # A single number has become an array of one.
    return value.reshape(*shape.shape, 1).view(np.uint32) if _is_wide(shape) else value.reshape(shape.shape)


def _joined(words: Any, shape: ArrayType) -> Any:
    return jax.lax.bitcast_convert_type(words, shape.dtype) if _is_wide(shape) else words


def _host(function: Host, shapes: tuple[ArrayType, ...]) -> Callable[..., Any]:
    return lambda *arrays: tuple(map(_split, function(*arrays), shapes))


def _avals(shapes: tuple[ArrayType, ...], **_: Any) -> list[ShapedArray]:
    return [_in_words(shape) for shape in shapes]


_call = called_on_the_host("pathmix_call_host", _avals, _host)
