"""Call a Python function from inside a compiled program."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_batching import custom_vmap

from pathmix.doors.jax import ShapedArray, called_on_the_host

ArrayType = jax.ShapeDtypeStruct
Host = Callable[..., Sequence[np.ndarray]]


def call_host(function: Host, shapes: Sequence[ArrayType], *arrays: Any) -> list[Any]:
    """The function's results, of these shapes. Under `vmap` it is called once, and goes through the batch."""

    @custom_vmap
    def call(*arrays: Any) -> list[Any]:
        words = _call(*arrays, function=function, shapes=tuple(shapes))
        return [_joined(word, shape) for word, shape in zip(words, shapes, strict=True)]

    @call.def_vmap
    def batched(size: int, is_batched: Sequence[bool], *arrays: Any) -> tuple[list[Any], list[bool]]:
        def each(*values: np.ndarray) -> list[np.ndarray]:
            rows = (
                function(
                    *(value[row] if many else value for value, many in zip(values, is_batched, strict=True))
                )
                for row in range(size)
            )
            return [np.stack(column) for column in zip(*rows, strict=True)]

        wider = [ArrayType((size, *shape.shape), shape.dtype) for shape in shapes]
        return call_host(each, wider, *arrays), [True] * len(shapes)

    return call(*arrays)


def _is_wide(shape: Any) -> bool:
    return np.dtype(shape.dtype).itemsize >= 8


def _in_words(shape: ArrayType) -> Any:
    """Wide numbers travel as pairs of 32-bit words, which no thread rounds."""
    if not _is_wide(shape):
        return ShapedArray(shape.shape, shape.dtype)
    return ShapedArray((*shape.shape, np.dtype(shape.dtype).itemsize // 4), jnp.uint32)


def _split(value: np.ndarray, shape: ArrayType) -> np.ndarray:
    value = np.ascontiguousarray(value, dtype=shape.dtype)
    # A single number has become an array of one.
    return value.reshape(*shape.shape, 1).view(np.uint32) if _is_wide(shape) else value.reshape(shape.shape)


def _joined(words: Any, shape: ArrayType) -> Any:
    if not _is_wide(shape):
        return words
    dtype = np.dtype(shape.dtype)
    if dtype.kind != "c":
        return jax.lax.bitcast_convert_type(words, dtype)
    part = np.dtype(f"f{dtype.itemsize // 2}")
    pairs = words.reshape(*shape.shape, 2, part.itemsize // 4)
    pairs = jax.lax.bitcast_convert_type(pairs if part.itemsize == 8 else pairs[..., 0], part)
    return jax.lax.complex(pairs[..., 0], pairs[..., 1])


def _host(function: Host, shapes: tuple[ArrayType, ...]) -> Callable[..., Any]:
    return lambda *arrays: tuple(map(_split, function(*arrays), shapes))


def _avals(shapes: tuple[ArrayType, ...], **_: Any) -> list[ShapedArray]:
    return [_in_words(shape) for shape in shapes]


_call = called_on_the_host("pathmix_call_host", _avals, _host)
