"""Numbers that come again and again in a known array are computed with once.

The distances between the points of a grid are a few hundred numbers, and the matrix of them has ten thousand
elements: a kernel is evaluated at the former and looked up for the latter. Counts in a large data set are
another case. What is done element by element with such an array and scalars is done with its different
numbers instead (*compactly*), if that saves more than looking them up costs.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from pathmix.doors.jax import JaxprEqn, ShapedArray
from pathmix.program.operations import Operation, Value, needed

_FEWEST, _MOST = 2**10, 2**20  # elements
_GAIN = 4  # times as many elements as different numbers there must be
_COSTLY = frozenset((
    "exp", "exp2", "expm1", "log", "log1p", "pow", "sqrt", "rsqrt", "cbrt", "logistic", "sin", "cos",
    "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf",
    "erfc", "erf_inv", "lgamma", "digamma", "polygamma", "igamma", "igammac", "zeta", "bessel_i0e",
    "bessel_i1e", "regularized_incomplete_beta",
))  # fmt: skip
_POINTWISE = _COSTLY | {
    "add", "sub", "mul", "div", "max", "min", "neg", "abs", "sign", "floor", "ceil", "round", "rem",
    "integer_pow", "square", "convert_element_type", "copy", "is_finite", "clamp", "select_n", "eq",
    "ne", "lt", "le", "gt", "ge", "and", "or", "not", "xor",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Partition:
    """Which elements of an array are the same number."""

    index: np.ndarray  # the number of each element's number, flat
    first: np.ndarray  # where each number comes first
    shape: tuple[int, ...]  # of the array

    @property
    def pays(self) -> bool:
        return _GAIN * len(self.first) <= len(self.index)

    @cached_property
    def places(self) -> jax.Array:
        """One array for all paths."""
        return jnp.asarray(self.index.reshape(*self.shape, 1))


class _Compact(NamedTuple):
    """A value at the different numbers of an array."""

    value: Value
    partition: _Partition
    is_costly: bool


def without_repetition(
    done: Sequence[Operation], outputs: Sequence[Value]
) -> tuple[list[Operation], list[Value]]:
    """Operations and outputs, with what can be done compactly done so."""
    made = _Rewriting()
    for operation in done:
        made.add(operation)
    if not made.expanded:
        return list(done), list(outputs)
    results = [made.full(value) for value in outputs]
    return [*needed(made.done, results)][::-1], results


class _Rewriting:
    def __init__(self) -> None:
        self.done: list[Operation] = []
        self.expanded: dict[Value, Value] = {}
        self._compact: dict[Value, _Compact] = {}

    def add(self, operation: Operation) -> None:
        """Do an operation compactly where that is possible, and in full in case somebody needs that."""
        found = self._compactly(operation)
        if found is not None:
            self._compact[operation.results[0]] = found
        else:
            operation.operands = [self.full(value) for value in operation.operands]
        self.done.append(operation)  # after what it needs

    def full(self, value: Value) -> Value:
        """All elements of a value: looked up if it is costly to compute them."""
        compact = self._compact.get(value)
        if compact is None or not compact.is_costly:
            return value
        if value not in self.expanded:
            index = compact.partition.places
            places = Value(ShapedArray(index.shape, index.dtype), constant=index)
            self.expanded[value] = self._looked_up(compact.value, places, value.aval)
        return self.expanded[value]

    def _compactly(self, operation: Operation) -> _Compact | None:
        name, results = operation.name, operation.results
        if name not in _POINTWISE or not _FEWEST <= math.prod(results[0].aval.shape) <= _MOST:
            return None
        shape = results[0].aval.shape
        parts = [self._part(value, shape) for value in operation.operands]
        known = [part for part in parts if isinstance(part, _Compact)]
        if None in parts or not known:
            return None
        partition = known[0].partition
        for part in known[1:]:
            partition = _joint(partition, part.partition)
        if not partition.pays:
            return None
        operands = [
            self._at(part, partition) if isinstance(part, _Compact) else self._scalar(part, partition)
            for part in parts
            if part is not None
        ]
        result = self._made(operation.eqn, operands, _at_numbers(results[0], partition))
        return _Compact(result, partition, name in _COSTLY or any(part.is_costly for part in known))

    def _part(self, value: Value, shape: tuple[int, ...]) -> "_Compact | Value | None":
        """An operand at the different numbers of an array, or a scalar; if it is one of them."""
        if value in self._compact:
            return self._compact[value]
        if value.aval.shape == ():
            return value
        maker = value.maker
        if maker is not None:
            is_scalar = maker.name == "broadcast_in_dim" and maker.operands[0].aval.shape == ()
            return value if is_scalar and value.aval.shape == shape else None
        if value.constant is None or value.aval.shape != shape:
            return None
        array = np.asarray(value.constant)
        partition = _partition(array.dtype.str, shape, array.tobytes())
        if not partition.pays:
            return None
        numbers = Value(_at_numbers(value, partition), constant=array.ravel()[partition.first])
        self._compact[value] = _Compact(numbers, partition, is_costly=False)
        return self._compact[value]

    def _at(self, compact: _Compact, partition: _Partition) -> Value:
        """At the numbers of a finer partition."""
        if compact.partition is partition:
            return compact.value
        index = compact.partition.index[partition.first]
        if compact.value.constant is not None:
            return Value(_at_numbers(compact.value, partition), constant=compact.value.constant[index])
        places = Value(ShapedArray((len(index), 1), index.dtype), constant=index[:, None])
        return self._looked_up(compact.value, places, _at_numbers(compact.value, partition))

    def _scalar(self, value: Value, partition: _Partition) -> Value:
        if value.aval.shape == ():
            return value
        assert value.maker is not None
        eqn = value.maker.eqn
        shorter = eqn.replace(params={**eqn.params, "shape": partition.first.shape})
        return self._made(shorter, value.maker.operands[:1], _at_numbers(value, partition))

    def _looked_up(self, numbers: Value, places: Value, aval: Any) -> Value:
        if jax.default_backend() == "cpu" and aval.dtype in (np.float32, np.float64):
            numbers = self._kept(numbers)
        return self._made(_looking_up(numbers.aval, places.aval), [numbers, places], aval)

    def _kept(self, numbers: Value) -> Value:
        """The same, but XLA does not compute a number wherever it is looked up, again and again.

        It would, on CPUs, and has no barrier that lasts. What is solved by a library it leaves alone.
        """
        for eqn in _solving(numbers.aval):
            one = [Value(ShapedArray((1, 1), numbers.aval.dtype), constant=np.ones((1, 1)))]
            operands = [numbers] if len(eqn.invars) == 1 else [*one, numbers]
            numbers = self._made(eqn, operands, eqn.outvars[0].aval)
        return numbers

    def _made(self, eqn: JaxprEqn, operands: list[Value], aval: Any) -> Value:
        operation = Operation(eqn, operands)
        operation.results = [Value(aval, operation)]
        self.done.append(operation)
        return operation.results[0]


def _at_numbers(value: Value, partition: _Partition) -> Any:
    return ShapedArray(partition.first.shape, value.aval.dtype)


@lru_cache(8)
def _partition(dtype: str, shape: tuple[int, ...], content: bytes) -> _Partition:
    """Of an array. As bits: there are two zeros, and many that are no numbers."""
    size = np.dtype(dtype).itemsize
    return _numbered(np.frombuffer(content, f"u{size}" if size in (1, 2, 4, 8) else f"V{size}"), shape)


@lru_cache(16)
def _joint(one: _Partition, other: _Partition) -> _Partition:
    """Elements that are the same number in both arrays."""
    if one is other:
        return one
    return _numbered(one.index.astype(np.int64) * len(other.first) + other.index, one.shape)


def _numbered(keys: np.ndarray, shape: tuple[int, ...]) -> _Partition:
    """Numbers are counted as they come, so that it does not matter which of two arrays is named first."""
    _, first, index = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first)
    places = np.empty(len(order), np.int32)
    places[order] = np.arange(len(order), dtype=np.int32)
    return _only(places[index.ravel()].tobytes(), first[order].tobytes(), shape)


@lru_cache(64)
def _only(index: bytes, first: bytes, shape: tuple[int, ...]) -> _Partition:
    """One object for every partition."""
    return _Partition(np.frombuffer(index, np.int32), np.frombuffer(first, np.int64), shape)


@lru_cache(256)
def _looking_up(numbers: ShapedArray, places: ShapedArray) -> JaxprEqn:
    """The operation that gives every element its number."""
    dimensions = lax.GatherDimensionNumbers(offset_dims=(), collapsed_slice_dims=(0,), start_index_map=(0,))

    def look_up(values: jax.Array, places: jax.Array) -> jax.Array:
        return lax.gather(values, places, dimensions, (1,), mode="promise_in_bounds")

    (eqn,) = jax.make_jaxpr(look_up)(numbers, places).jaxpr.eqns
    return eqn


@lru_cache(256)
def _solving(numbers: ShapedArray) -> list[JaxprEqn]:
    """The operations that solve 1 x = numbers."""

    def solve(one: jax.Array, values: jax.Array) -> jax.Array:
        row = lax.reshape(values, (1, values.size))
        return lax.reshape(lax.linalg.triangular_solve(one, row, left_side=True, lower=True), values.shape)

    one = jax.ShapeDtypeStruct((1, 1), numbers.dtype)
    return jax.make_jaxpr(solve)(one, numbers).jaxpr.eqns
