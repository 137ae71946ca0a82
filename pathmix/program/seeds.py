"""A tree of seeds, split on the host: deriving a key compiles nothing."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pathmix.errors import OptionError

_KEPT_COLUMNS = 64  # of keys: most runs draw no more sites


@dataclass(frozen=True)
class Seed:
    """A node of the tree. Children with different labels are independent.

    >>> Seed.of(0).child(1) == Seed.of(0).child(1)
    True
    """

    entropy: tuple[int, ...]
    labels: tuple[int, ...] = ()

    @staticmethod
    def of(seed: Any) -> "Seed":
        """From an int, a JAX key, or an old-style uint32 key."""
        if isinstance(seed, (int, np.integer)) and not isinstance(seed, bool):
            return Seed((int(seed < 0), abs(int(seed))))
        if isinstance(seed, (jax.Array, np.ndarray)):
            if jax.numpy.issubdtype(seed.dtype, jax.dtypes.prng_key) and seed.shape == ():
                seed = jax.random.key_data(seed)
            if seed.dtype == np.uint32 and seed.ndim == 1:
                return Seed(tuple(int(word) for word in np.asarray(seed)))
        raise OptionError(
            f"The first argument is the seed, an int or a JAX key, not {seed!r}. "
            "The model's own arguments come after it."
        )

    def __str__(self) -> str:
        """What the user gave: an int, or the words of a key."""
        if len(self.entropy) == 2 and self.entropy[0] in (0, 1):
            return str(-self.entropy[1] if self.entropy[0] else self.entropy[1])
        return str(list(self.entropy))

    def child(self, *labels: int) -> "Seed":
        """An independent seed for each sequence of labels."""
        return Seed(self.entropy, (*self.labels, *labels))

    def key(self) -> jax.Array:
        """For JAX."""
        return jax.random.wrap_key_data(jnp.asarray(self.key_words()), impl="threefry2x32")

    def key_words(self) -> np.ndarray:
        """What a key is made of."""
        return self._sequence().generate_state(2, np.uint32)

    def batch(self, size: int) -> "SeedBatch":
        """Keys for a batch of runs of a program."""
        return SeedBatch(self, size)

    def words(self, size: int) -> np.ndarray:
        """A word of 64 bits for each run of a batch."""
        return self._sequence().generate_state(size, np.uint64)

    def generator(self) -> np.random.Generator:
        """For NumPy."""
        return np.random.default_rng(self._sequence())

    def _sequence(self) -> np.random.SeedSequence:
        return np.random.SeedSequence(self.entropy, spawn_key=self.labels)


class SeedBatch:
    """A key for each run of a batch and each site that it draws, in order; made when asked for."""

    def __init__(self, seed: Seed, size: int, rows: np.ndarray | None = None) -> None:
        self._seed, self._size, self._rows = seed, size, rows
        self._columns: dict[int, jax.Array] = {}

    def __len__(self) -> int:
        return self._size if self._rows is None else len(self._rows)

    def rows(self, rows: np.ndarray) -> "SeedBatch":
        """Some of the runs, with the same keys."""
        return SeedBatch(self._seed, self._size, rows if self._rows is None else self._rows[rows])

    def keys(self, position: int) -> jax.Array:
        """For the site at this position, a key for each run."""
        found = self._columns.get(position)
        if found is None:
            generator = self._seed.child(position).generator()
            words = generator.integers(2**32, size=(self._size, 2), dtype=np.uint32)
            words = words if self._rows is None else words[self._rows]
            found = jax.random.wrap_key_data(jnp.asarray(words), impl="threefry2x32")
            if position < _KEPT_COLUMNS:
                self._columns[position] = found
        return found
