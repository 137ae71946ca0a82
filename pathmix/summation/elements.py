"""On which variables each element of a graph's outputs depends.

Exact for operations that work element by element, move elements about, look up rows or add them up; any other
operation is taken to mix all that it is given.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pathmix.doors.jax import Jaxpr
from pathmix.program.dependence import callee, opened, scanned
from pathmix.program.graph import Graph, apply
from pathmix.program.known import evaluate_known
from pathmix.program.operations import Operation, Value, operations
from pathmix.summation.scattering import reached
from pathmix.summation.sets import Sets

_MOVING = {
    "broadcast_in_dim", "reshape", "squeeze", "expand_dims", "transpose", "slice", "rev", "concatenate",
    "copy",
}  # fmt: skip
_REDUCING = {
    "reduce_sum", "reduce_max", "reduce_min", "reduce_prod", "reduce_and", "reduce_or", "argmax", "argmin",
}  # fmt: skip
_BY_ELEMENT = {
    "abs", "acos", "acosh", "add", "add_any", "and", "asin", "asinh", "atan", "atan2", "atanh",
    "bessel_i0e", "bessel_i1e", "cbrt", "ceil", "clamp", "convert_element_type", "cos", "cosh", "digamma",
    "div", "eq", "erf", "erf_inv", "erfc", "exp", "exp2", "expm1", "floor", "ge", "gt", "igamma", "igammac",
    "integer_pow", "is_finite", "le", "lgamma", "log", "log1p", "logistic", "lt", "max", "min", "mul", "ne",
    "neg", "nextafter", "not", "or", "polygamma", "pow", "real", "reduce_precision",
    "regularized_incomplete_beta", "rem", "round", "rsqrt", "select_n", "shift_left",
    "shift_right_arithmetic", "shift_right_logical", "sign", "sin", "sinh", "sqrt", "square",
    "stop_gradient", "sub", "tan", "tanh", "xor", "zeta",
}  # fmt: skip
_OF_MATRICES = {"cholesky", "triangular_solve"}  # batches of them

Found = dict[Value, np.ndarray]  # values that depend on variables; others are not there


def dependence(graph: Graph, known: Sequence[Any | None], on: Mapping[int, np.ndarray], sets: Sets) -> Any:
    """For each output, an array of sets, or None if it depends on no variable.

    `known` are the values of the inputs that have one, `on` the sets of the inputs' elements.
    """
    inputs = [Value(var.aval, constant=known[i]) for i, var in enumerate(graph.inputs)]
    for number, value in enumerate(inputs):
        value.input = number if value.constant is None else None
    captured = [Value(v.aval, constant=c) for v, c in zip(graph.jaxpr.invars, graph.consts, strict=False)]
    reading = _Reading(graph.jaxpr, sets)
    done, outputs = operations(graph.jaxpr, (), [*captured, *inputs])
    found = reading.through(done, {inputs[number]: array for number, array in on.items()})
    return [found.get(value) for value in outputs]


class _Reading:
    def __init__(self, jaxpr: Jaxpr, sets: Sets) -> None:
        self.jaxpr, self.sets = jaxpr, sets

    def through(self, done: Sequence[Operation], found: Found) -> Found:
        for operation in done:
            given = [found.get(value) for value in operation.operands]
            if any(array is not None for array in given):
                found.update(zip(operation.results, self._results(operation, given, done), strict=True))
        return found

    def _results(
        self, operation: Operation, given: list[np.ndarray | None], done: Sequence[Operation]
    ) -> list[np.ndarray]:
        name, result = operation.name, operation.results[0]
        filled = [
            np.zeros(_shape(value), int) if array is None else array
            for value, array in zip(operation.operands, given, strict=True)
        ]
        if name in _BY_ELEMENT:
            return [np.broadcast_to(self.sets.union(*filled), _shape(result))]
        if name in _MOVING:
            return [np.asarray(apply(self.jaxpr, operation.eqn, filled)[0])]
        if name in _REDUCING:
            return [self.sets.along(filled[0], operation.eqn.params["axes"])]
        if name == "scan":
            return self._scanned(operation, filled, done)
        special = _SPECIAL.get(name)
        if special is not None:
            array = special(self, operation, filled, given, done)
            if array is not None:
                return [array]
        if (inside := callee(operation.eqn)) is not None:
            return self._called(inside, operation, given, done)
        everything = self.sets.all(np.concatenate([array.ravel() for array in filled]))
        return [np.full(_shape(value), everything) for value in operation.results]

    def _scanned(
        self, operation: Operation, filled: list[np.ndarray], done: Sequence[Operation]
    ) -> list[np.ndarray]:
        """Turn by turn. Whole numbers that are known stay so: they count turns, and choose rows."""
        function, consts, carried = scanned(operation.eqn)
        length, backwards = operation.eqn.params["length"], operation.eqn.params["reverse"]
        first = consts + carried
        known = [self.constant(value, done) for value in operation.operands]
        carry, numbers = filled[consts:first], known[consts:first]
        given: list[list[np.ndarray]] = []
        for turn in reversed(range(length)) if backwards else range(length):
            on = [*filled[:consts], *carry, *(array[turn] for array in filled[first:])]
            rows = [None if array is None else np.asarray(array)[turn] for array in known[first:]]
            inputs = _inputs(function, [*known[:consts], *numbers, *rows])
            inside, outputs = operations(opened(function), getattr(function, "consts", ()), inputs)
            found = self.through(
                inside, {value: array for value, array in zip(inputs, on, strict=True) if array.any()}
            )
            sets = [found.get(value, np.zeros(_shape(value), int)) for value in outputs]
            carry, numbers = sets[:carried], [self._counted(value, inside) for value in outputs[:carried]]
            given.append(sets[carried:])
        ordered = given[::-1] if backwards else given
        later = operation.results[carried:]
        stacked = [np.stack(column) for column in zip(*ordered, strict=True)] if ordered else []
        return [*carry, *(stacked or [np.zeros(_shape(value), int) for value in later])]

    def _counted(self, value: Value, inside: Sequence[Operation]) -> Any | None:
        is_whole = np.issubdtype(getattr(value.aval, "dtype"), np.integer) and not _shape(value)
        return self.constant(value, inside) if is_whole else None

    def _called(
        self, function: Any, operation: Operation, given: list[np.ndarray | None], done: Sequence[Operation]
    ) -> list[np.ndarray]:
        known = [
            self.constant(value, done) if array is None else None
            for value, array in zip(operation.operands, given, strict=True)
        ]
        inputs = _inputs(function, known)
        inside, outputs = operations(opened(function), getattr(function, "consts", ()), inputs)
        on = {value: array for value, array in zip(inputs, given, strict=True) if array is not None}
        found = self.through(inside, on)
        return [found.get(value, np.zeros(_shape(value), int)) for value in outputs]

    def positions(self, value: Value, done: Sequence[Operation]) -> np.ndarray:
        """Whole numbers, each -1 where it is unknown."""
        if (constant := self.constant(value, done)) is not None:
            return np.asarray(constant)
        if value.maker is not None and value.maker in done and value.maker.name == "concatenate":
            parts = [self.positions(part, done) for part in value.maker.operands]
            return np.concatenate(parts, axis=value.maker.eqn.params["dimension"])
        return np.full(_shape(value), -1)

    def constant(self, value: Value, done: Sequence[Operation]) -> Any | None:
        """A value that depends on nothing unknown."""
        if value.constant is not None or value.maker is None:
            return value.constant
        asked, seen = [value], set[Operation]()
        while asked:
            one = asked.pop()
            if one.maker is not None and one.maker not in seen:
                seen.add(one.maker)
                asked += one.maker.operands
            elif one.maker is None and one.constant is None:
                return None
        behind = [operation for operation in done if operation in seen]
        if len(behind) != len(seen):  # from outside of a function
            return None
        copy = Value(value.aval, value.maker)
        results = [copy if result is value else result for result in value.maker.results]
        last = Operation(value.maker.eqn, value.maker.operands, results)
        evaluate_known(self.jaxpr, [*(o for o in behind if o is not value.maker), last], [copy])
        return copy.constant


Rule = Callable[
    [_Reading, Operation, list[np.ndarray], list[np.ndarray | None], Sequence[Operation]], np.ndarray | None
]


def _gather(
    reading: _Reading,
    operation: Operation,
    filled: list[np.ndarray],
    given: list[np.ndarray | None],
    done: Sequence[Operation],
) -> np.ndarray | None:
    sets, (operand, rows) = reading.sets, filled
    if given[1] is None:
        where = reading.constant(operation.operands[1], done)
        if where is not None:
            # Out of range, numbers may be NaN; sets are empty.
            eqn = operation.eqn.replace(params={**operation.eqn.params, "fill_value": 0})
            return np.asarray(apply(reading.jaxpr, eqn, [operand, where])[0])
    shape, numbers = _shape(operation.results[0]), operation.eqn.params["dimension_numbers"]
    # Rows of one batch stay among themselves; within it, any element of the operand may be chosen.
    batch = dict(zip(numbers.start_indices_batching_dims, numbers.operand_batching_dims, strict=True))
    rest = [axis for axis in range(operand.ndim) if axis not in batch.values()]
    inner = sets.along(np.transpose(operand, [*(batch[axis] for axis in sorted(batch)), *rest]),
                       range(len(batch), operand.ndim))  # fmt: skip
    sizes = dict(zip(sorted(batch), inner.shape, strict=True))
    inner = inner.reshape([sizes.get(axis, 1) for axis in range(rows.ndim - 1)])
    chosen = sets.union(sets.along(rows, [rows.ndim - 1]), inner)
    chosen = chosen.reshape([1 if axis in numbers.offset_dims else size for axis, size in enumerate(shape)])
    return np.broadcast_to(chosen, shape)


def _sliced(
    reading: _Reading,
    operation: Operation,
    filled: list[np.ndarray],
    given: list[np.ndarray | None],
    done: Sequence[Operation],
) -> np.ndarray | None:
    """A slice that is read, or written: where it begins must be known."""
    arrays = 1 if operation.name == "dynamic_slice" else 2
    if any(array is not None for array in given[arrays:]):
        return None
    where = [reading.constant(value, done) for value in operation.operands[arrays:]]
    if any(index is None for index in where):
        return None
    return np.asarray(apply(reading.jaxpr, operation.eqn, [*filled[:arrays], *where])[0])


def _scatter(
    reading: _Reading,
    operation: Operation,
    filled: list[np.ndarray],
    given: list[np.ndarray | None],
    done: Sequence[Operation],
) -> np.ndarray | None:
    if given[1] is None and operation.name == "scatter":
        where = reading.constant(operation.operands[1], done)
        if where is not None:
            return np.maximum(
                np.asarray(apply(reading.jaxpr, operation.eqn, [filled[0], where, filled[2]])[0]), 0
            )
    return reached(reading.sets, operation.eqn.params, filled, reading.positions(operation.operands[1], done))


def _dot(reading: _Reading, operation: Operation, filled: list[np.ndarray], *_: Any) -> np.ndarray:
    sets = reading.sets
    (contracting, batch) = operation.eqn.params["dimension_numbers"]
    sides = []
    for array, gone, kept in zip(filled, contracting, batch, strict=True):
        free = [axis for axis in range(array.ndim) if axis not in gone and axis not in kept]
        sides.append((np.transpose(array, [*kept, *free, *gone]), len(kept), len(free), len(gone)))
    (left, kept, own, gone), (right, _, other, _) = sides
    left = sets.along(left, range(left.ndim - gone, left.ndim))
    right = sets.along(right, range(right.ndim - gone, right.ndim))
    left = left.reshape(*left.shape[: kept + own], *(1,) * other)
    right = right.reshape(*right.shape[:kept], *(1,) * own, *right.shape[kept:])
    return sets.union(left, right)


def _cumulative(reading: _Reading, operation: Operation, filled: list[np.ndarray], *_: Any) -> np.ndarray:
    axis, backwards = operation.eqn.params["axis"], operation.eqn.params["reverse"]
    rows = np.moveaxis(filled[0], axis, 0)
    rows = rows[::-1] if backwards else rows
    found = [rows[0]] if len(rows) else []
    for row in rows[1:]:
        found.append(reading.sets.union(found[-1], row))
    summed = np.stack(found) if found else rows
    return np.moveaxis(summed[::-1] if backwards else summed, 0, axis)


def _matrices(
    reading: _Reading, operation: Operation, filled: list[np.ndarray], *_: Any
) -> np.ndarray | None:
    shape = _shape(operation.results[0])
    batches = [reading.sets.along(array, [array.ndim - 2, array.ndim - 1]) for array in filled]
    return np.broadcast_to(reading.sets.union(*batches)[..., None, None], shape)


_SPECIAL: dict[str, Rule] = {
    "gather": _gather,
    "dynamic_slice": _sliced,
    "dynamic_update_slice": _sliced,
    "scatter": _scatter,
    "scatter-add": _scatter,
    "dot_general": _dot,
    **dict.fromkeys(("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"), _cumulative),
    **dict.fromkeys(_OF_MATRICES, _matrices),
}


def _inputs(function: Any, known: Sequence[Any | None]) -> list[Value]:
    """Of a function: constants where they are known."""
    return [
        Value(var.aval, input=number) if constant is None else Value(var.aval, constant=constant)
        for number, (var, constant) in enumerate(zip(opened(function).invars, known, strict=True))
    ]


def _shape(value: Value) -> tuple[int, ...]:
    return tuple(value.aval.shape)
