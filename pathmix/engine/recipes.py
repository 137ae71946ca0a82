"""Recipes: functions as what they are made from, to be traced wherever they are computed.

Tracing is Python, and takes longer than all else that is done for a function here. Graphs travel as data, and
what is pathmix's or a library's by its name. Nothing of the user's travels: what refers to it has no recipe.
"""

import io
import pickle
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import fields, is_dataclass
from types import BuiltinFunctionType, FunctionType
from typing import Any, NamedTuple

import cloudpickle
import jax
import numpy as np

from pathmix.doors.jaxprs import reduced
from pathmix.engine.members import Form, batched
from pathmix.engine.packing import Packing
from pathmix.engine.requests import MemberFunction
from pathmix.errors import RecipeError
from pathmix.program.graph import Graph

_KNOWN = {*sys.stdlib_module_names, "pathmix", "jax", "jaxlib", "numpy", "numpyro", "optax", "cloudpickle"}
_NAMED = (type, FunctionType, BuiltinFunctionType)
_SETTINGS: dict[str, Callable[[Any], Any]] = {  # of JAX's, that what is traced depends on
    "jax_default_matmul_precision": jax.default_matmul_precision,
    "jax_default_prng_impl": jax.default_prng_impl,
    "jax_numpy_dtype_promotion": jax.numpy_dtype_promotion,
    "jax_threefry_partitionable": jax.threefry_partitionable,
}


class Recipe(NamedTuple):
    """A batch of calls of one function."""

    make: Callable[[], MemberFunction]
    form: Form
    results: Packing
    arguments: Any  # the tree of (fixed, moving) arrays


def written(recipe: Recipe) -> bytes:
    """The bytes that it is read from; an error where it refers to what others may not have."""
    try:
        return _pickled((_settings(), recipe))
    except RecipeError:
        raise
    except Exception as error:  # there are many ways not to be data
        raise RecipeError(f"A function has no recipe: {type(error).__name__}: {error}") from error


def read(
    content: bytes, arranged: Callable[[Any, Any], tuple[Any, ...]]
) -> Callable[[list[Any], list[Any]], list[Any]]:
    """(fixed, moving) arrays -> arrays; their trees are `arranged` as what a batch takes."""

    def function(fixed: list[Any], moving: list[Any]) -> list[Any]:
        try:
            settings, recipe = pickle.loads(content)
            found: list[Packing] = []
            with _set(settings):
                compute = batched(recipe.make(), recipe.form, found)
                results = compute(*arranged(*recipe.arguments.unflatten([*fixed, *moving])))
        except Exception as error:
            raise RecipeError(f"A recipe cannot be read: {type(error).__name__}: {error}") from error
        if found != [recipe.results]:
            raise RecipeError(f"A recipe gives other results than it says: {found}, not {recipe.results}")
        return jax.tree.leaves(results)

    return function


class _Pickler(cloudpickle.Pickler):
    """Of graphs, it writes the form."""

    def __init__(self, file: io.BytesIO, *, in_rule: bool) -> None:
        super().__init__(file, protocol=5)
        self._in_rule = in_rule

    def reducer_override(self, obj: Any) -> Any:
        """How something is written that is neither a number, a text nor a collection."""
        if isinstance(obj, _NAMED):
            if str(obj.__module__).split(".")[0] not in _KNOWN:
                raise RecipeError(
                    f"A function has no recipe: it refers to {obj.__module__}.{obj.__qualname__}."
                )
            return super().reducer_override(obj)
        found = reduced(obj, None if self._in_rule else _rule)
        if found is not None:
            return found
        if isinstance(obj, Graph):
            obj = obj.without_numbers
        if is_dataclass(obj) and type(obj).__module__.startswith("pathmix."):
            # What was derived of them is derived again.
            return _dataclass, (type(obj), [getattr(obj, field.name) for field in fields(obj)])
        if isinstance(obj, jax.Array):
            return jax.numpy.asarray, (np.asarray(obj),)
        return super().reducer_override(obj)


def _pickled(obj: Any, *, in_rule: bool = False) -> bytes:
    file = io.BytesIO()
    _Pickler(file, in_rule=in_rule).dump(obj)
    return file.getvalue()


def _rule(obj: Any) -> bytes:
    return _pickled(obj, in_rule=True)


def _dataclass(kind: type, values: list[Any]) -> Any:
    made = object.__new__(kind)
    for field, value in zip(fields(kind), values, strict=True):
        object.__setattr__(made, field.name, value)
    return made


def _settings() -> dict[str, Any]:
    return {name: getattr(jax.config, name) for name in _SETTINGS}


@contextmanager
def _set(settings: dict[str, Any]) -> Iterator[None]:
    with ExitStack() as stack:
        for name, value in settings.items():
            stack.enter_context(_SETTINGS[name](value))
        yield
