"""Functions as StableHLO, which is data for XLA and nothing Python runs."""

from collections.abc import Callable
from typing import Any

import jax
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


def read(content: bytes) -> export.Exported:
    """The function that was written down."""
    return export.deserialize(bytearray(content))
