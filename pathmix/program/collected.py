"""What is computed twice is computed once, and equal terms of a sum are counted.

A loop that asks `Bernoulli(p)` until it says yes adds one and the same term for every no: counted, all
lengths of the loop are one graph, with the count among its constants.
"""

from collections import Counter
from collections.abc import Container, Hashable, Sequence
from functools import lru_cache

import jax
import numpy as np
from jax import lax

from pathmix.doors.jax import JaxprEqn, ShapedArray
from pathmix.program.identity import operation_identity
from pathmix.program.operations import COMMUTATIVE, Operation, Value

_LARGE = 2**12  # bytes from which on constants are told apart by being other objects


def collected(
    done: Sequence[Operation], outputs: Sequence[Value], sums: Container[Operation]
) -> tuple[list[Operation], list[Value]]:
    """Operations without those that were done before; the terms of `sums` counted."""
    found: list[Operation] = []
    known: dict[Hashable, Operation] = {}
    instead: dict[Value, Value] = {}
    for operation in done:
        operation.operands = [instead.get(value, value) for value in operation.operands]
        if operation in sums:
            found += _counted(operation)
        if operation.eqn.effects:
            found.append(operation)
            continue
        before = known.setdefault(_key(operation), operation)
        if before is operation:
            found.append(operation)
        else:
            instead.update(zip(operation.results, before.results, strict=True))
    return found, [instead.get(value, value) for value in outputs]


def _key(operation: Operation) -> Hashable:
    operands = [_value_key(value) for value in operation.operands]
    if operation.name in COMMUTATIVE:
        operands.sort()
    return operation_identity(operation.eqn), tuple(operands)


def _value_key(value: Value) -> tuple[str, int | bytes]:
    if value.constant is None:
        return "value", id(value)
    array = np.asarray(value.constant)
    if array.nbytes >= _LARGE:
        return "array", id(value.constant)
    return f"{array.dtype.str} {array.shape} {value.is_literal}", array.tobytes()


def _counted(operation: Operation) -> list[Operation]:
    """Products that take the place of a sum's equal terms.

    If there are any, the other terms are counted, too: once more is no other graph.
    """
    counts = Counter(value for value in operation.operands if _is_countable(value))
    if not counts or max(counts.values()) == 1:
        return []
    products = [_times(value, count) for value, count in counts.items()]
    rest = [value for value in operation.operands if not _is_countable(value)]
    if len(products) + len(rest) == 1:  # no sum any more
        operation.eqn, operation.operands = products[0].eqn, products[0].operands
        return []
    operation.operands = [*(product.results[0] for product in products), *rest]
    return products


def _is_countable(value: Value) -> bool:
    return value.constant is None and value.aval.shape == ()


def _times(value: Value, count: int) -> Operation:
    aval = ShapedArray((), value.aval.dtype)
    product = Operation(_product(aval), [value, Value(aval, constant=np.asarray(count, aval.dtype))])
    product.results = [Value(aval, product)]
    return product


@lru_cache(16)
def _product(aval: ShapedArray) -> JaxprEqn:
    (eqn,) = jax.make_jaxpr(lax.mul)(aval, aval).jaxpr.eqns
    return eqn
