"""Many small arrays as a few vectors: what a compiled function is called with costs by the piece."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
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
        wide = jax.dtypes.canonicalize_dtype(np.float64) == np.float64
        return _packing(structure, tuple((np.shape(leaf), _dtype(leaf, wide)) for leaf in leaves))

    @cached_property
    def large(self) -> tuple[int, ...]:
        """The leaves that stay by themselves."""
        return tuple(i for i, shape in enumerate(self.shapes) if math.prod(shape) >= LARGE)

    @cached_property
    def groups(self) -> dict[str, list[int]]:
        """The leaves of each vector."""
        found: dict[str, list[int]] = {}
        for i, dtype in enumerate(self.dtypes):
            if i not in self.large:
                found.setdefault(dtype, []).append(i)
        return found

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Bytes of each array: vectors, then the leaves that stay by themselves."""
        arrays = [*self.groups.values(), *([leaf] for leaf in self.large)]
        return tuple(
            sum(math.prod(self.shapes[i]) * np.dtype(self.dtypes[i]).itemsize for i in array)
            for array in arrays
        )

    @cached_property
    def _slices(self) -> list[list[tuple[int, int, int, tuple[int, ...]]]]:
        found = []
        for group in self.groups.values():
            stops = np.cumsum([math.prod(self.shapes[i]) for i in group]).tolist()
            found.append(
                [(i, a, b, self.shapes[i]) for i, a, b in zip(group, [0, *stops], stops, strict=False)]
            )
        return found

    def pack(self, tree: Any) -> list[np.ndarray]:
        """The vectors of a tree of concrete arrays."""
        leaves = jax.tree.leaves(tree)
        return [
            np.concatenate([np.asarray(leaves[i], dtype).reshape(-1) for i in group])
            for dtype, group in self.groups.items()
        ]

    def pack_traced(self, tree: Any) -> tuple[list[jax.Array], list[jax.Array]]:
        """The vectors of a tree of traced arrays, and the leaves that stay by themselves."""
        leaves = jax.tree.leaves(tree)
        vectors = [jnp.concatenate([jnp.ravel(leaves[i]) for i in group]) for group in self.groups.values()]
        return vectors, [leaves[i] for i in self.large]

    def places(self, part: Callable[[Any], Any]) -> frozenset[int]:
        """Which arrays, of vectors and then those that stay by themselves, have but leaves of that part."""
        leaves = set(jax.tree.leaves(part(self.structure.unflatten(range(len(self.shapes))))))
        arrays = [*self.groups.values(), *([leaf] for leaf in self.large)]
        return frozenset(place for place, array in enumerate(arrays) if leaves.issuperset(array))

    def unpack(self, vectors: Sequence[Any], large: Sequence[Any]) -> Any:
        """The tree again; any kind of array, and None where one was left out."""
        leaves: list[Any] = [None] * len(self.shapes)
        for vector, group in zip(vectors, self._slices, strict=True):
            if vector is not None:
                for i, start, stop, shape in group:
                    leaves[i] = vector[start:stop].reshape(shape)
        for i, leaf in zip(self.large, large, strict=True):
            leaves[i] = leaf
        return self.structure.unflatten(leaves)


@lru_cache(1_024)
def _packing(structure: Any, types: tuple[tuple[tuple[int, ...], str], ...]) -> Packing:
    return Packing(structure, tuple(shape for shape, _ in types), tuple(dtype for _, dtype in types))


def _dtype(leaf: Any, wide: bool) -> str:
    return _known_dtype(getattr(leaf, "dtype", None) or np.result_type(leaf), wide)


@lru_cache
def _known_dtype(dtype: Any, wide: bool) -> str:
    """That arrays have in compiled code, with 64-bit numbers switched on or off."""
    del wide
    return str(jax.dtypes.canonicalize_dtype(dtype))
