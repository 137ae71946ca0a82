"""Functions that can be written into a file."""

import hashlib
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import jax
from jax import export

from pathmix.engine import stablehlo
from pathmix.engine.executables import Executables
from pathmix.errors import PathmixError

Arrays = tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class Code:
    """A function (arrays, arrays) -> arrays, to be compiled: built here, or as a file has it."""

    key: Hashable  # equal where one executable will do
    build: Callable[[], Callable[[Arrays, Arrays], Any]]
    example: Arrays  # shapes and types of what changes from call to call
    written: bytes | None = None

    @staticmethod
    def read(written: bytes, example: Arrays) -> "Code":
        """The function that was written down."""

        def build() -> Callable[[Arrays, Arrays], Any]:
            function = stablehlo.read(written)
            here = export.default_export_platform()
            if here not in function.platforms:
                raise PathmixError(
                    f"This posterior was saved on {' and '.join(function.platforms)}, and can be drawn from "
                    f"only there; here JAX runs on {here}."
                )
            return lambda changing, fixed: function.call(*changing, *fixed)

        return Code(hashlib.sha256(written).hexdigest(), build, example, written)

    def as_bytes(self, fixed: Arrays) -> bytes:
        """What a file has of it; `fixed` are arrays of the shapes that every call has."""
        if self.written is not None:
            return self.written
        function, count = self.build(), len(self.example)
        shapes = [jax.ShapeDtypeStruct(one.shape, one.dtype) for one in (*self.example, *fixed)]
        _, content = stablehlo.written(
            lambda *given: function(given[:count], given[count:]), *shapes, where="written to a file"
        )
        return content

    def __call__(self, executables: Executables, changing: Arrays, fixed: Arrays) -> list[Any]:
        return jax.tree.leaves(executables.call(self.key, self.build, changing, fixed))
