"""A graph as a flat list of operations, calls opened, that can be rearranged and made a graph again."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pathmix.doors.jax import Jaxpr, JaxprEqn, Literal, ShapedArray, Var, literal, nameless
from pathmix.program.dependence import opened

COMMUTATIVE = ("add", "mul", "max", "min", "and", "or", "xor", "eq", "ne")
# Calls that mean nothing but what they call. Those with rules of their own (for derivatives, for batches)
# stay closed.
_CALLS = ("pjit", "jit", "closed_call", "core_call")


@dataclass(eq=False, slots=True)
class Value:
    """A number or array: an input, a constant, or a result."""

    aval: Any
    maker: "Operation | None" = None
    input: int | None = None  # its number
    constant: Any = None
    is_literal: bool = False  # a whole number that is written in the program


@dataclass(eq=False, slots=True)
class Operation:
    eqn: JaxprEqn  # what is done
    operands: list[Value]
    results: list[Value] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.eqn.primitive.name


def operations(
    jaxpr: Jaxpr, consts: Sequence[Any], inputs: Sequence[Value]
) -> tuple[list[Operation], list[Value]]:
    """The operations of a jaxpr in order, and its outputs."""
    found: list[Operation] = []

    def run(jaxpr: Jaxpr, consts: Sequence[Any], inputs: Sequence[Value]) -> list[Value]:
        values: dict[Any, Value] = {
            var: Value(var.aval, constant=const) for var, const in zip(jaxpr.constvars, consts, strict=True)
        }
        values.update(zip(jaxpr.invars, inputs, strict=True))

        def read(atom: Any) -> Value:
            return values[atom] if not isinstance(atom, Literal) else _number(atom)

        for eqn in jaxpr.eqns:
            operands = [read(atom) for atom in eqn.invars]
            if eqn.primitive.name in _CALLS:
                (function,) = (eqn.params[name] for name in ("jaxpr", "call_jaxpr") if name in eqn.params)
                results = run(opened(function), getattr(function, "consts", ()), operands)
            else:
                operation = Operation(eqn, operands)
                operation.results = results = [Value(var.aval, operation) for var in eqn.outvars]
                found.append(operation)
            values.update(zip(eqn.outvars, results, strict=True))
        return [read(atom) for atom in jaxpr.outvars]

    return found, run(jaxpr, consts, inputs)


def as_jaxpr(
    template: Jaxpr, given: Sequence[Value], done: Sequence[Operation], outputs: Sequence[Value]
) -> Jaxpr:
    """A jaxpr that takes the `given` values, does operations in order, and gives the outputs."""
    variables: dict[Value, Any] = {value: Var(value.aval) for value in given}

    def atom(value: Value) -> Any:
        if value.is_literal and value not in variables:
            return Literal(value.constant, value.aval)
        return variables[value]

    eqns = []
    for operation in done:
        operands = [atom(value) for value in operation.operands]
        variables.update((value, Var(value.aval)) for value in operation.results)
        eqns.append(
            operation.eqn.replace(invars=operands, outvars=[variables[value] for value in operation.results])
        )
    return template.replace(
        constvars=[],
        invars=[variables[value] for value in given],
        outvars=[atom(value) for value in outputs],
        eqns=eqns,
        effects=frozenset().union(*(operation.eqn.effects for operation in done)),
        debug_info=nameless(template),
    )


def needed(done: Sequence[Operation], wanted: Sequence[Value]) -> Iterator[Operation]:
    """The operations behind some values, last first."""
    open_values = set(wanted)
    for operation in reversed(done):
        if any(result in open_values for result in operation.results):
            open_values.update(operation.operands)
            yield operation


def plain(aval: Any) -> Any:
    """The type of a constant: what it may be promoted to is settled."""
    return ShapedArray(aval.shape, aval.dtype) if isinstance(aval, ShapedArray) else aval


def _number(atom: Literal) -> Value:
    dtype, number = np.dtype(getattr(atom.aval, "dtype")), literal(atom)
    if not np.issubdtype(dtype, np.inexact):
        return Value(atom.aval, constant=number, is_literal=True)
    return Value(plain(atom.aval), constant=np.asarray(number, dtype))  # paths often differ only in numbers
