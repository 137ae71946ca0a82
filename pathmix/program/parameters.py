"""Parameters: what a program's `param` statements give, and how it can change."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpyro.distributions.transforms import IdentityTransform, IndependentTransform

from pathmix.errors import ParameterError
from pathmix.program.source import Source

# Kept at the value of the first run; put in as numbers; or inputs of the graphs.
ParameterUse = Literal["initial", "given", "inputs"]
Values = Mapping[str, Any]  # by name: an array, or the tree of arrays of a module


class Part(NamedTuple):
    """One array of a parameter. Those of a module have many."""

    name: str
    number: int  # among the arrays of the parameter


@dataclass(frozen=True, eq=False)
class Parameter:
    """A part of a parameter that is learned."""

    part: Part
    shape: tuple[int, ...]
    source: Source
    bijection: Any  # from R^n onto its constraint; one of NumPyro's transforms

    @property
    def name(self) -> str:
        return self.part.name

    @property
    def free_shape(self) -> tuple[int, ...]:
        """Of the unconstrained array that stands for it."""
        return tuple(self.bijection.inverse_shape(self.shape))

    @property
    def is_bounded(self) -> bool:
        """Whether it has a constraint."""
        bijection = self.bijection
        while isinstance(bijection, IndependentTransform):
            bijection = bijection.base_transform
        return not isinstance(bijection, IdentityTransform)

    def freed(self, value: Any) -> np.ndarray:
        """The unconstrained array that stands for a value."""
        free = np.asarray(self.bijection.inv(jnp.asarray(value, float)))
        if not np.all(np.isfinite(free)):
            raise ParameterError(
                f"The value of the parameter {self.name!r} at {self.source} is {np.asarray(value)}, which is "
                f"not inside of its constraint {self.bijection.codomain!r}. Start with another value."
            )
        return free


def plain(values: Values) -> dict[str, Any]:
    """Values as NumPy has them."""
    return {name: jax.tree.map(np.asarray, value) for name, value in values.items()}


def parts_of(values: Values) -> dict[Part, Any]:
    """The arrays of parameters, one by one."""
    return {
        Part(name, number): leaf
        for name, value in values.items()
        for number, leaf in enumerate(jax.tree.leaves(value))
    }


def is_learnable(array: Any) -> bool:
    """Whether a part can move: counters and keys of modules cannot."""
    return jnp.issubdtype(jnp.result_type(array), jnp.floating) or isinstance(array, (int, float))


def with_parts(values: Values, parts: Mapping[Part, np.ndarray]) -> dict[str, Any]:
    """Values of parameters, with some of their arrays changed."""
    changed = {}
    for name, value in values.items():
        leaves, tree = jax.tree.flatten(value)
        changed[name] = tree.unflatten([parts.get(Part(name, i), leaf) for i, leaf in enumerate(leaves)])
    return changed
