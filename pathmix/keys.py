"""Seeds and keys."""

from typing import Any

import jax
import numpy as np

from pathmix.errors import OptionError


def as_key(seed: Any) -> jax.Array:
    """A JAX key from an int, a typed key, or an old-style uint32 key."""
    if isinstance(seed, (int, np.integer)) and not isinstance(seed, bool):
        return jax.random.key(int(seed))
    if isinstance(seed, (jax.Array, np.ndarray)):
        if jax.dtypes.issubdtype(seed.dtype, jax.dtypes.prng_key) and seed.shape == ():
            return jax.numpy.asarray(seed)
        if seed.dtype == np.uint32 and seed.shape == (2,):
            return jax.random.wrap_key_data(jax.numpy.asarray(seed))
    raise OptionError(
        f"The first argument is the seed: an int or a JAX key, not {seed!r}. "
        "The model's own arguments come after it."
    )


def generator(key: jax.Array) -> np.random.Generator:
    """NumPy's generator, seeded by a JAX key."""
    return np.random.default_rng(np.asarray(jax.random.key_data(key)))
