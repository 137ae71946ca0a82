"""Fingerprints of a model and of what it is called with: whether they are the same in another process."""

import hashlib
import inspect
from collections.abc import Callable
from typing import Any

import jax
import numpy as np


def of_model(model: Callable[..., Any]) -> str | None:
    """Of its source, and of the functions inside it; None where there is no source to look at."""
    inner = inspect.unwrap(getattr(model, "func", model))
    try:
        text = inspect.getsource(inner if inspect.isroutine(inner) else type(inner))
    except (OSError, TypeError):
        return None
    return hashlib.sha256(inspect.cleandoc(text).encode()).hexdigest()


def of_arguments(arguments: Any) -> str:
    """Of numbers, texts and arrays; of other things, only what type they have."""
    digest = hashlib.sha256()
    leaves, tree = jax.tree.flatten(arguments)
    digest.update(str(tree).encode())
    for leaf in leaves:
        digest.update(_content(leaf))
    return digest.hexdigest()


def _content(leaf: Any) -> bytes:
    if isinstance(leaf, (bool, int, float, complex, str, bytes)):
        return repr(leaf).encode()
    try:
        array = np.asarray(leaf)
    except Exception:  # of whatever kind it may be
        return type(leaf).__qualname__.encode()
    if array.dtype.hasobject:
        return type(leaf).__qualname__.encode()
    return f"{array.dtype} {array.shape}".encode() + np.ascontiguousarray(array).tobytes()
