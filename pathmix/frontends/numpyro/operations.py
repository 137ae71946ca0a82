"""One operation of a traced program, computed for all runs of a batch.

Whatever IEEE arithmetic defines to the bit is left to NumPy, which has nothing to compile; the rest is
compiled, one executable for each operation, shared by all programs.
"""

from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pathmix.doors.jax import ClosedJaxpr, Jaxpr, alone, evaluate, operands, untraced
from pathmix.engine.compiler import compiler_options
from pathmix.frontends.numpyro.templates import template_of
from pathmix.program.identity import identity


class Rows(NamedTuple):
    """A value in every run: one for all of them, or along the first axis one for each."""

    value: Any
    differs: bool


# Compiled code for few rows is not worth much of XLA's time: a gamma draw compiles in half of it.
_FEW_ROWS = 1_024
_MOST_EXECUTABLES = 512


def compute(equation: Any, inputs: Sequence[Rows]) -> list[Rows]:
    """The results of an equation under tracing."""
    known = _BY_NUMPY.get(equation.primitive.name)
    if known is not None and all(isinstance(rows.value, (np.ndarray, np.generic)) for rows in inputs):
        return [Rows(_by_numpy(known, equation, inputs), any(rows.differs for rows in inputs))]
    differs = tuple(rows.differs for rows in inputs)
    function = _compiled(_Operation(equation, differs))
    with untraced():
        results = function(*(rows.value for rows in inputs))
    return [Rows(on_host(result), any(differs)) for result in results]


def is_simple(equation: Any) -> bool:
    """Whether an equation takes next to no time."""
    return equation.primitive.name in _BY_NUMPY


def on_host(value: Any) -> Any:
    """A value as NumPy has it; keys stay with JAX."""
    is_key = jnp.issubdtype(getattr(value, "dtype", float), jax.dtypes.extended)
    return value if is_key else np.asarray(value)


class _Operation:
    """An equation, equal to others that compute the same: in caches, it stands for its compiled form."""

    def __init__(self, equation: Any, differs: tuple[bool, ...]) -> None:
        self.equation: Any = equation
        self.differs = differs
        avals = tuple(tracer.aval for tracer in operands(equation))
        items = tuple(sorted(equation.params.items()))
        self._key: Hashable = (equation.primitive, items, avals, differs, jnp.result_type(float))
        self._hash = hash(self._key)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Operation) and self._key == other._key


class _Structure:
    """The same for functions inside an operation that were traced anew and are the same."""

    def __init__(self, jaxpr: Jaxpr, differs: tuple[bool, ...]) -> None:
        self.jaxpr, self.differs = jaxpr, differs
        self._key = (identity(jaxpr), differs, jnp.result_type(float))

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Structure) and self._key == other._key


@lru_cache(_MOST_EXECUTABLES)
def _compiled(operation: _Operation) -> Callable[..., Any]:
    equation, operation.equation = operation.equation, None  # caches keep operations, and must keep no tracer
    return _compiled_structure(_Structure(_opened(equation), operation.differs))


def _opened(equation: Any) -> Jaxpr:
    """What an equation computes, without how to differentiate it: that is by functions, new each time."""
    if template := template_of(equation):
        return template.rest
    inside = equation.params.get("call_jaxpr")
    return inside.jaxpr if isinstance(inside, ClosedJaxpr) and not inside.consts else alone(equation)


@lru_cache(_MOST_EXECUTABLES)
def _compiled_structure(structure: _Structure) -> Callable[..., Any]:
    jaxpr, differs = structure.jaxpr, structure.differs

    def function(*values: Any) -> list[Any]:
        return evaluate(jaxpr, (), *values)

    if not any(differs):
        return jax.jit(function)
    batched = jax.vmap(function, in_axes=tuple(0 if differ else None for differ in differs))
    few = jax.jit(batched, compiler_options=compiler_options(0))
    many = jax.jit(batched, compiler_options=compiler_options(1))

    def call(*values: Any) -> Any:
        rows = next(len(value) for value, differ in zip(values, differs, strict=True) if differ)
        return (few if rows <= _FEW_ROWS else many)(*values)

    return call


def _by_numpy(function: Callable[..., Any], equation: Any, inputs: Sequence[Rows]) -> np.ndarray:
    aval = equation.outvars[0].aval
    rows = next((len(given.value) for given in inputs if given.differs), None)
    with np.errstate(all="ignore"):
        result = function(
            *(_aligned(given, aval.ndim) if len(inputs) > 1 else given.value for given in inputs),
            lead=() if rows is None else (rows,),
            shape=aval.shape,
            **equation.params,
        )
    return np.asarray(result).astype(aval.dtype, copy=False)


def _aligned(given: Rows, ndim: int) -> Any:
    """An operand that broadcasts with others of so many dimensions: JAX takes scalars among them."""
    value = given.value
    missing = ndim + 1 - value.ndim if given.differs else 0
    return np.reshape(value, (len(value), *((1,) * missing), *value.shape[1:])) if missing else value


def _elementwise(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *values, **_: function(*values)


def _cast(value: Any, *, new_dtype: Any, **_: Any) -> Any:
    kinds = np.asarray(value).dtype.kind, np.dtype(new_dtype).kind
    if kinds[0] == "f" and kinds[1] in "iu":  # beyond the type's range, XLA and C differ
        ends = np.iinfo(new_dtype)
        value = np.nan_to_num(value, nan=0.0)
        big, small = value >= float(ends.max), value <= float(ends.min)
        value = np.where(big | small, 0, value).astype(new_dtype)
        return np.where(big, ends.max, np.where(small, ends.min, value))
    return np.asarray(value).astype(new_dtype)


def _select(which: Any, *cases: Any, **_: Any) -> Any:
    if np.asarray(which).dtype != np.bool_:
        return np.choose(which, cases)
    return np.where(which, cases[1], cases[0])


def _reshape(value: Any, *, lead: tuple[int, ...], shape: tuple[int, ...], **_: Any) -> Any:
    return np.reshape(value, (*lead, *shape))


_BY_NUMPY: dict[str, Callable[..., Any]] = {
    **{
        name: _elementwise(function)
        for name, function in {
            "add": np.add, "add_any": np.add, "sub": np.subtract, "mul": np.multiply, "neg": np.negative,
            "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal,
            "ne": np.not_equal, "abs": np.abs, "floor": np.floor, "ceil": np.ceil, "square": np.square,
            "is_finite": np.isfinite, "stop_gradient": lambda value: value, "copy": lambda value: value,
        }.items()
    },
    "and": _elementwise(np.bitwise_and),
    "or": _elementwise(np.bitwise_or),
    "not": _elementwise(np.invert),
    "convert_element_type": _cast,
    "select_n": _select,
    "reshape": _reshape,
    "squeeze": _reshape,
    "expand_dims": _reshape,
}  # fmt: skip
