"""Arrays that many paths have in common, the data above all, are kept once."""

import hashlib
from typing import Any
from weakref import WeakValueDictionary

import jax
import jax.numpy as jnp
import numpy as np

_FROM = 1_024  # bytes: smaller ones are not worth it
_known: WeakValueDictionary[tuple[Any, ...], jax.Array] = WeakValueDictionary()


def once(array: jax.Array) -> jax.Array:
    """The array that is kept for these numbers. What lies on an accelerator is not fetched to be compared."""
    is_plain = not jnp.issubdtype(array.dtype, jax.dtypes.prng_key) and not array.committed
    if array.nbytes < _FROM or not is_plain or jax.default_backend() != "cpu":
        return array
    digest = hashlib.blake2b(np.ascontiguousarray(array).view(np.uint8).data, digest_size=16).digest()
    return _known.setdefault((array.shape, array.dtype, array.weak_type, digest), array)
