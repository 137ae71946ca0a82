"""Values that depend on nothing unknown, computed once.

A path has hundreds of small ones (the probabilities of its discrete sites, above all), so NumPy computes what
it can: JAX takes a hundred times as long to get a number through its layers, and compiles each operation.
"""

from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from scipy import special

from pathmix.doors.jax import Jaxpr, evaluate
from pathmix.program.dependence import opened
from pathmix.program.operations import Operation, Value, as_jaxpr, needed, operations, plain

_WITH_RULES = ("custom_jvp_call", "custom_vjp_call")  # for derivatives, of which a known value has none


def evaluate_known(template: Jaxpr, done: Sequence[Operation], wanted: Sequence[Value]) -> None:
    """Give the wanted values, which the operations compute of constants, their constants."""
    found: dict[Value, Any] = {}

    def read(value: Value) -> Any:
        return found.get(value, value.constant)

    for operation in reversed(list(needed(done, wanted))):
        results = _results(template, operation, [read(value) for value in operation.operands])
        found.update(zip(operation.results, results, strict=True))
    for value in wanted:
        value.constant, value.maker, value.aval = read(value), None, plain(value.aval)


def _results(template: Jaxpr, operation: Operation, operands: list[Any]) -> list[Any]:
    if operation.name in _WITH_RULES:
        return _called(template, operation.eqn.params["call_jaxpr"], operation, operands)
    by_numpy = _BY_NUMPY.get(operation.name)
    if by_numpy is not None and all(_is_plain(operand) for operand in operands):
        aval = operation.results[0].aval
        with np.errstate(all="ignore"):
            result = by_numpy(operation.eqn.params, *map(np.asarray, operands))
        if result is not None:
            return [np.asarray(result, aval.dtype)]
    given = [Value(value.aval, input=i) for i, value in enumerate(operation.operands)]
    alone = Operation(operation.eqn, list(given), operation.results)
    return evaluate(as_jaxpr(template, given, [alone], operation.results), (), *operands)


def _called(template: Jaxpr, function: Any, operation: Operation, operands: list[Any]) -> list[Any]:
    """The results of a function, which is remembered on numbers: paths call the same ones again and again."""
    numbers = [np.asarray(operand) for operand in operands] if all(map(_is_plain, operands)) else []
    if not numbers or any(number.ndim for number in numbers):
        return _opened(template, function, operation, operands)
    key = tuple((number.dtype.char, number.tobytes()) for number in numbers)
    known = _remembered.setdefault(function, {})
    if key not in known:
        known[key] = _opened(template, function, operation, operands)
    return known[key]


_remembered: WeakKeyDictionary[Any, dict[Any, list[Any]]] = WeakKeyDictionary()


def _opened(template: Jaxpr, function: Any, operation: Operation, operands: list[Any]) -> list[Any]:
    given = [Value(v.aval, constant=c) for v, c in zip(operation.operands, operands, strict=True)]
    inside, outputs = operations(opened(function), getattr(function, "consts", ()), given)
    evaluate_known(template, inside, [value for value in outputs if value.maker is not None])
    return [value.constant for value in outputs]


def _is_plain(operand: Any) -> bool:
    """Whether NumPy can take it: JAX has types of its own, keys for one."""
    return isinstance(operand, (np.ndarray, np.generic, bool, int, float)) or (
        isinstance(getattr(operand, "dtype", None), np.dtype) and operand.dtype.kind in "fiub"
    )


Rule = Callable[..., Any]  # None where NumPy's result would not be XLA's


def _plainly(function: Callable[..., Any]) -> Rule:
    return lambda _, *operands: function(*operands)


def _for_floats(function: Callable[..., Any]) -> Rule:
    return lambda _, *operands: function(*operands) if operands[0].dtype.kind == "f" else None


def _cast(params: Any, x: np.ndarray) -> Any:
    wanted = np.dtype(params["new_dtype"])
    # Beyond the range of a type of whole numbers, XLA and C differ.
    return x.astype(wanted) if wanted.kind in "fb" or x.dtype.kind == "b" else None


def _select(_: Any, which: np.ndarray, *cases: np.ndarray) -> Any:
    return np.where(which, cases[1], cases[0]) if which.dtype == bool and len(cases) == 2 else None


def _broadcast(params: Any, x: np.ndarray, *sizes: Any) -> Any:
    if sizes:
        return None
    shape = [1] * len(params["shape"])
    for axis, size in zip(params["broadcast_dimensions"], x.shape, strict=True):
        shape[axis] = size
    return np.broadcast_to(x.reshape(shape), params["shape"])


def _reshape(params: Any, x: np.ndarray, *sizes: Any) -> Any:
    return None if sizes or params.get("dimensions") is not None else x.reshape(params["new_sizes"])


def _slice(params: Any, x: np.ndarray) -> Any:
    strides = params["strides"] or (1,) * x.ndim
    return x[tuple(map(slice, params["start_indices"], params["limit_indices"], strides))]


def _reduce(function: Callable[..., Any]) -> Rule:
    return lambda params, x: function(x, axis=tuple(params["axes"])) if x.dtype.kind in "fb" else None


_BY_NUMPY: dict[str, Rule] = {
    **{
        name: _plainly(function)
        for name, function in {
            "add": np.add, "add_any": np.add, "sub": np.subtract, "mul": np.multiply, "neg": np.negative,
            "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal,
            "ne": np.not_equal, "abs": np.abs, "max": np.maximum, "min": np.minimum, "square": np.square,
            "and": np.bitwise_and, "or": np.bitwise_or, "not": np.invert, "copy": np.copy,
            "stop_gradient": np.copy, "is_finite": np.isfinite,
        }.items()
    },
    **{
        name: _for_floats(function)
        for name, function in {
            "div": np.divide, "exp": np.exp, "log": np.log, "log1p": np.log1p, "expm1": np.expm1,
            "sqrt": np.sqrt, "floor": np.floor, "ceil": np.ceil, "sin": np.sin, "cos": np.cos,
            "tanh": np.tanh, "logistic": special.expit, "lgamma": special.gammaln, "digamma": special.digamma,
            "erf": special.erf, "erfc": special.erfc, "erf_inv": special.erfinv,
            "clamp": lambda low, x, high: np.minimum(np.maximum(x, low), high),
        }.items()
    },
    "integer_pow": lambda params, x: x ** np.asarray(params["y"], x.dtype) if x.dtype.kind == "f" else None,
    "pow": lambda _, x, y: np.power(x, y) if x.dtype.kind == y.dtype.kind == "f" else None,
    "convert_element_type": _cast,
    "select_n": _select,
    "broadcast_in_dim": _broadcast,
    "reshape": _reshape,
    "squeeze": lambda params, x: np.squeeze(x, tuple(params["dimensions"])),
    "expand_dims": lambda params, x: np.expand_dims(x, tuple(params["dimensions"])),
    "transpose": lambda params, x: np.transpose(x, params["permutation"]),
    "slice": _slice,
    "concatenate": lambda params, *parts: np.concatenate(parts, axis=params["dimension"]),
    "reduce_sum": _reduce(np.sum),
    "reduce_max": _reduce(np.max),
    "reduce_min": _reduce(np.min),
    "reduce_and": _reduce(np.all),
    "reduce_or": _reduce(np.any),
}  # fmt: skip
