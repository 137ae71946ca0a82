"""Terms as fine as they come: where one is a sum, what it adds up depends on less.

A vector that is one event, or a factor that the program has summed itself, is then as good as a plate.
"""

from collections.abc import Iterator

import jax.numpy as jnp
import numpy as np

from pathmix.program.graph import Graph
from pathmix.program.operations import Value, as_jaxpr, operations
from pathmix.program.slp import TermOutput

_SAME_SUM = ("reduce_sum", "reshape", "squeeze", "expand_dims", "transpose", "copy")


def finer(graph: Graph, terms: tuple[TermOutput, ...]) -> tuple[Graph, tuple[TermOutput, ...]]:
    """A graph with further outputs, and terms among them that add up to the same."""
    given = [Value(var.aval, input=number) for number, var in enumerate(graph.jaxpr.invars)]
    done, outputs = operations(graph.jaxpr, (), given)
    found, parts = list[TermOutput](), list(outputs)
    for term in terms:
        summands = [outputs[term.slot]] if term.is_own else list(_summands(outputs[term.slot]))
        for value in summands:
            found.append(term._replace(slot=len(parts)))
            parts.append(value)
    used = dict.fromkeys([*(value for operation in done for value in operation.operands), *parts])
    numbers = [value for value in used if value.constant is not None and not value.is_literal]
    consts = tuple(jnp.asarray(value.constant, np.dtype(value.aval.dtype)) for value in numbers)
    return Graph(as_jaxpr(graph.jaxpr, [*numbers, *given], done, parts), (*consts, *graph.consts)), tuple(
        found
    )


def _summands(value: Value) -> Iterator[Value]:
    """What the elements of a value add up, element by element."""
    maker = value.maker
    if maker is not None and maker.name in _SAME_SUM:
        yield from _summands(maker.operands[0])
    elif maker is not None and maker.name == "add" and _shapes(*maker.operands) == {tuple(value.aval.shape)}:
        for operand in maker.operands:
            yield from _summands(operand)
    else:
        yield value


def _shapes(*values: Value) -> set[tuple[int, ...]]:
    return {tuple(value.aval.shape) for value in values}
