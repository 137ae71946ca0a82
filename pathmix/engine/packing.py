"""Many small arrays as a few vectors: what a compiled function is called with costs by the piece."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

LARGE = 4_096  # elements, from which on an array stays by itself


@dataclass(frozen=True)
class Packing:
    """How the leaves of a tree lie in vectors, one for each type of number."""

    structure: Any
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]

    @staticmethod
    def of(tree: Any) -> "Packing":
        leaves, structure = jax.tree.flatten(tree)
        dtypes = (str(jax.dtypes.canonicalize_dtype(_dtype(leaf))) for leaf in leaves)
        return Packing(structure, tuple(np.shape(leaf) for leaf in leaves), tuple(dtypes))

    @cached_property
    def large(self) -> tuple[int, ...]:
        """The leaves that stay by themselves."""
        return tuple(i for i, shape in enumerate(self.shapes) if np.prod(shape, dtype=int) >= LARGE)

    @cached_property
    def groups(self) -> dict[str, list[int]]:
        """The leaves of each vector."""
        found: dict[str, list[int]] = {}
        for i, dtype in enumerate(self.dtypes):
            if i not in self.large:
                found.setdefault(dtype, []).append(i)
        return found

    def pack(self, tree: Any) -> list[np.ndarray]:
        """The vectors of a tree of concrete arrays."""
        leaves = jax.tree.leaves(tree)
        return [
            np.concatenate([np.ravel(np.asarray(leaves[i], dtype)) for i in group])
            for dtype, group in self.groups.items()
        ]

    def pack_traced(self, tree: Any) -> tuple[list[jax.Array], list[jax.Array]]:
        """The vectors of a tree of traced arrays, and the leaves that stay by themselves."""
        leaves = jax.tree.leaves(tree)
        vectors = [jnp.concatenate([jnp.ravel(leaves[i]) for i in group]) for group in self.groups.values()]
        return vectors, [leaves[i] for i in self.large]

    def unpack(self, vectors: Sequence[Any], large: Sequence[Any]) -> Any:
        """The tree again; any kind of array."""
        leaves: list[Any] = [None] * len(self.shapes)
        for vector, group in zip(vectors, self.groups.values(), strict=True):
            start = 0
            for i in group:
                stop = start + int(np.prod(self.shapes[i], dtype=int))
                leaves[i] = vector[start:stop].reshape(self.shapes[i])
                start = stop
        for i, leaf in zip(self.large, large, strict=True):
            leaves[i] = leaf
        return self.structure.unflatten(leaves)


def _dtype(leaf: Any) -> Any:
    return getattr(leaf, "dtype", None) or np.result_type(leaf)
