"""A model bound to its arguments, and the limits put on one run of it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


@dataclass(frozen=True)
class Limits:
    """What one forward run may do before it counts as a runaway."""

    max_sites: int = 10_000
    max_seconds: float = 60.0


@dataclass(frozen=True)
class Program:
    """The user's model and the arguments it is called with."""

    model: Callable[..., Any]
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    limits: Limits = Limits()

    def __call__(self) -> Any:
        args, kwargs = jax.tree.map(_as_jax, (self.args, self.kwargs))
        return self.model(*args, **kwargs)

    def with_arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> "Program":
        return Program(self.model, args, kwargs, self.limits)


def _as_jax(leaf: Any) -> Any:
    """NumPy data as JAX arrays, as NumPyro's own inference does: they can be indexed by minibatches."""
    if isinstance(leaf, np.ndarray) and np.issubdtype(leaf.dtype, np.number):
        return jnp.asarray(leaf)
    return leaf
