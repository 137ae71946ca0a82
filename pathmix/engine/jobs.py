"""Jobs: batches that are computed elsewhere.

What travels is data: a function as StableHLO, and arrays. Whoever computes needs pathmix and JAX, but neither
the user's program nor the library it is written in.
"""

import hashlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import jax
import numpy as np

from pathmix.doors.jax import ClosedJaxpr, Jaxpr
from pathmix.engine import stablehlo
from pathmix.engine.precision import Engine

_CALLING_PYTHON = ("pure_callback", "io_callback", "debug_callback", "pathmix_call_host")


@dataclass(frozen=True)
class Function:
    """A function (arrays, arrays) -> arrays, as `jax.export` writes it."""

    written: bytes
    sizes: tuple[int, ...]  # bytes of each result of one member

    @cached_property
    def digest(self) -> str:
        """Equal where one compiled function will do."""
        return hashlib.sha256(self.written).hexdigest()


@dataclass(frozen=True, eq=False)
class Job:
    """A batch of one structure."""

    function: Function
    fixed: list[Any]  # arrays that come again and again, the very same objects
    moving: list[Any]  # arrays, or columns that are made where they are needed
    members: int  # whose results are wanted
    engine: Engine
    name: str = ""  # for people: the paths it is for
    unread: frozenset[int] = frozenset()  # results in whose place None will do

    @property
    def size(self) -> int:
        """Bytes of the results that are wanted."""
        sizes = enumerate(self.function.sizes)
        return self.members * sum(size for place, size in sizes if place not in self.unread)


class Crew(Protocol):
    """Computes the jobs of a run, from several threads at once."""

    @property
    def threads(self) -> int:
        """How many shall wait for jobs."""
        ...

    def compute(self, job: Job) -> list[np.ndarray | None]:
        """The results. An exception says that there are none, and becomes the status of the job's paths."""
        ...


@runtime_checkable
class Helpful(Protocol):
    """A crew that can run the user's program, too."""

    def each(self, task: Callable[[list[Any]], list[Any]], items: list[Any]) -> list[Any]:
        """What the task gives for each of the items, some at a time; None where that could not be had."""
        ...


@runtime_checkable
class Executor(Protocol):
    """Has jobs computed somewhere: a cluster, other processes."""

    def crew(self, engine: Engine) -> AbstractContextManager[Crew]:
        """Who works during one run."""
        ...


class Shipped:
    """A function that others compile and compute; called like one that was compiled here."""

    def __init__(
        self,
        send: Callable[[Function, list[Any], list[Any], int], list[Any]],
        built: Callable[..., Any],
        args: tuple[Any, ...],
    ) -> None:
        given = _sorted(*args)
        leaves, tree = jax.tree.flatten(given)
        count = len(jax.tree.leaves(given[0]))

        def flat(fixed: Sequence[Any], moving: Sequence[Any]) -> Any:
            return built(*_unsorted(*tree.unflatten([*fixed, *moving])))

        shapes = [stablehlo.shape(leaf) for leaf in leaves]
        function, content = stablehlo.written(
            flat, shapes[:count], shapes[count:], where="computed elsewhere"
        )
        sizes = tuple(aval.size // aval.shape[0] * aval.dtype.itemsize for aval in function.out_avals)
        self._function, self._results, self._send = Function(content, sizes), function.out_tree, send

    def compile(self) -> "Shipped":
        """Nothing is left to do here."""
        return self

    def __call__(self, *args: Any) -> Any:
        fixed, moving = map(jax.tree.leaves, _sorted(*args))
        moving = [
            leaf if hasattr(leaf, "shape") else np.asarray(leaf, stablehlo.shape(leaf).dtype)
            for leaf in moving
        ]
        return self._results.unflatten(self._send(self._function, fixed, moving, args[0]))


def calls_python(jaxpr: Jaxpr) -> str | None:
    """The operation by which a traced function, or one within it, calls back to Python: it cannot travel."""
    for eqn in jaxpr.eqns:
        if eqn.primitive.name in _CALLING_PYTHON:
            return eqn.primitive.name
        for leaf in jax.tree.leaves(eqn.params, is_leaf=lambda leaf: isinstance(leaf, (Jaxpr, ClosedJaxpr))):
            inner = leaf.jaxpr if isinstance(leaf, ClosedJaxpr) else leaf
            if isinstance(inner, Jaxpr) and (found := calls_python(inner)):
                return found
    return None


def _sorted(count: Any, common: Any, arrays: Any) -> tuple[Any, Any]:
    """What stays the same from call to call, and what does not."""
    columns, large, *rest = arrays
    return (columns, large), (count, common, rest)


def _unsorted(fixed: Any, moving: Any) -> tuple[Any, Any, Any]:
    count, common, rest = moving
    return count, common, (*fixed, *rest)
