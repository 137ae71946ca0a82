"""Operations whose derivative is given beside them."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Pass = Callable[..., Sequence[Any]]


def with_derivative(forward: Pass, backward: Pass, arrays: Sequence[Any]) -> list[Any]:
    """Results of `forward`, which takes the arrays.

    `backward` takes these, and weights of the results that have a slope; it gives the gradients by the arrays
    that have one.
    """

    @jax.custom_vjp
    def operation(*arrays: Any) -> Any:
        return list(forward(*arrays))

    def with_arrays(*arrays: Any) -> Any:
        return operation(*arrays), arrays

    def gradients(arrays: Any, cotangents: Any) -> Any:
        # Whole numbers have cotangents that mean nothing.
        weights = [cotangent for cotangent in cotangents if has_slope(cotangent)]
        found = iter(backward(*arrays, *weights))
        return tuple(next(found) if has_slope(a) else np.zeros(a.shape, jax.dtypes.float0) for a in arrays)

    operation.defvjp(with_arrays, gradients)
    return operation(*arrays)


def has_slope(array: Any) -> bool:
    return bool(jnp.issubdtype(array.dtype, jnp.inexact))
