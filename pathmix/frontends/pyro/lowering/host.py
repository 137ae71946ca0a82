"""Call a Python function from inside a compiled program.

`jax.pure_callback` does not serve: it puts the arguments on a device from within the runtime's own
threads, and these then wait for each other when several programs run at once; and since 64-bit numbers
are switched on for the engine's threads only, it rounds them in the runtime's.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import ShapedArray
from jax.custom_batching import sequential_vmap
from jax.extend.core import Primitive
from jax.interpreters import mlir

ArrayType = jax.ShapeDtypeStruct
Host = Callable[..., Sequence[np.ndarray]]


def call_host(function: Host, shapes: Sequence[ArrayType], *arrays: Any) -> list[Any]:
    """The function's results, of these shapes. Under `vmap` it is called for one element after another."""

    @sequential_vmap
    def call(*arrays: Any) -> list[Any]:
        words = _call.bind(*arrays, function=function, shapes=tuple(shapes))
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
    return value.reshape(*shape.shape, 1).view(np.uint32) if _is_wide(shape) else value


def _joined(words: Any, shape: ArrayType) -> Any:
    return jax.lax.bitcast_convert_type(words, shape.dtype) if _is_wide(shape) else words


def _lowered(ctx: Any, *operands: Any, function: Host, shapes: tuple[ArrayType, ...]) -> Any:
    def call(*arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        return tuple(map(_split, function(*arrays), shapes))

    results, _, _ = mlir.emit_python_callback(
        ctx,
        call,
        None,
        list(operands),
        ctx.avals_in,
        ctx.avals_out,
        has_side_effect=False,
        returns_token=False,
    )
    return results


_call = Primitive("pathmix_call_host")
_call.multiple_results = True
_call.def_abstract_eval(lambda *_, shapes, **__: [_in_words(shape) for shape in shapes])
_call.def_impl(lambda *arrays, **options: jax.jit(lambda *a: _call.bind(*a, **options))(*arrays))
mlir.register_lowering(_call, _lowered)
