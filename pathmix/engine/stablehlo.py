"""Functions as StableHLO, which is data for XLA and nothing Python runs."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax import export

from pathmix.errors import UnwritableError


def written(function: Callable[..., Any], *shapes: Any, where: str) -> tuple[export.Exported, bytes]:
    """A function of arrays of these shapes, and the bytes that it is read from.

    An error where it calls back to Python, as operations of PyTorch do that JAX lacks.
    """
    try:
        found = export.export(jax.jit(function))(*shapes)
        return found, bytes(found.serialize())
    except (NotImplementedError, ValueError) as error:
        raise UnwritableError(f"Code that calls back to Python cannot be {where}: {error}") from error


def shape(leaf: Any) -> jax.ShapeDtypeStruct:
    """Of an array or a number, as compiled code sees it."""
    dtype = getattr(leaf, "dtype", None) or np.result_type(leaf)
    return jax.ShapeDtypeStruct(np.shape(leaf), jax.dtypes.canonicalize_dtype(dtype))


def types(shape: tuple[int, ...], dtype: Any) -> Any:
    """Of an array that compiled code computes, with 64-bit numbers switched on or off."""
    return jax.ShapeDtypeStruct(shape, jax.dtypes.canonicalize_dtype(dtype))


def read(content: bytes) -> export.Exported:
    """The function that was written down."""
    return export.deserialize(bytearray(content))
