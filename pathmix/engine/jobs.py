"""Jobs: batches that are computed elsewhere.

What travels is data: a function as a recipe, or as StableHLO where it has none, and arrays. Whoever computes
needs pathmix and JAX, but neither the user's program nor the library it is written in.
"""

import hashlib
import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import jax
import numpy as np

from pathmix.doors.jax import ClosedJaxpr, Jaxpr
from pathmix.engine import recipes, stablehlo
from pathmix.engine.members import Form, batched
from pathmix.engine.packing import Packing
from pathmix.engine.precision import Engine
from pathmix.engine.requests import MemberFunction
from pathmix.errors import RecipeError

_log = logging.getLogger("pathmix")

_CALLING_PYTHON = ("pure_callback", "io_callback", "debug_callback", "pathmix_call_host")


@dataclass(frozen=True)
class Function:
    """A function (arrays, arrays) -> arrays."""

    written: bytes
    is_recipe: bool  # or StableHLO
    sizes: tuple[int, ...]  # bytes of each result of one member

    @cached_property
    def digest(self) -> str:
        """Equal where one compiled function will do."""
        return hashlib.sha256(self.written).hexdigest()

    def read(self) -> Callable[[list[Any], list[Any]], Any]:
        """To be called, or compiled; a `RecipeError` says that a recipe does not serve here."""
        if self.is_recipe:
            return recipes.read(self.written, _unsorted)
        return stablehlo.read(self.written).call


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


@dataclass(frozen=True, eq=False)
class Batches:
    """How batches of one form are computed."""

    make: Callable[[], MemberFunction]
    form: Form
    types: Callable[[], Any] | None  # of one member's answer

    def __call__(self, results: list[Packing]) -> Callable[..., Any]:
        """What computes them; how results are packed is left there when it is traced."""
        return batched(self.make(), self.form, results)


class Shipped:
    """A function that others compile and compute; called like one that was compiled here."""

    def __init__(
        self,
        send: Callable[[Function, list[Any], list[Any], int], list[Any]],
        batches: Batches,
        results: list[Packing],
        args: tuple[Any, ...],
    ) -> None:
        self._send, self._results = send, results
        self._batches: Batches | None = batches  # until somebody has traced them
        self._function = self._described(batches, args) or self._traced(batches, args)

    def compile(self) -> "Shipped":
        """Nothing is left to do here."""
        return self

    def __call__(self, *args: Any) -> Any:
        batches = self._batches
        try:
            found = self._sent(args)
        except RecipeError as error:
            if batches is None:
                raise
            _log.info("%s It is written down instead.", error)
            self._function = self._traced(batches, args)
            found = self._sent(args)
        self._batches = None
        vectors = len(self._results[0].groups)
        return found[:vectors], found[vectors:]

    def _sent(self, args: tuple[Any, ...]) -> list[Any]:
        fixed, moving = map(jax.tree.leaves, _sorted(*args))
        moving = [
            leaf if hasattr(leaf, "shape") else np.asarray(leaf, stablehlo.shape(leaf).dtype)
            for leaf in moving
        ]
        return self._send(self._function, fixed, moving, args[0])

    def _described(self, batches: Batches, args: tuple[Any, ...]) -> Function | None:
        """A recipe, where there is one."""
        if batches.types is None:
            return None
        packing, tree = Packing.of(batches.types()), jax.tree.structure(_sorted(*args))
        try:
            content = recipes.written(recipes.Recipe(batches.make, batches.form, packing, tree))
        except RecipeError as error:
            _log.debug("%s", error)
            return None
        self._results[:] = [packing]
        return Function(content, is_recipe=True, sizes=packing.sizes)

    def _traced(self, batches: Batches, args: tuple[Any, ...]) -> Function:
        given = _sorted(*args)
        leaves, tree = jax.tree.flatten(given)
        count, built = len(jax.tree.leaves(given[0])), batches(self._results)

        def flat(fixed: Sequence[Any], moving: Sequence[Any]) -> Any:
            return built(*_unsorted(*tree.unflatten([*fixed, *moving])))

        shapes = [stablehlo.shape(leaf) for leaf in leaves]
        _, content = stablehlo.written(flat, shapes[:count], shapes[count:], where="computed elsewhere")
        return Function(content, is_recipe=False, sizes=self._results[0].sizes)


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
