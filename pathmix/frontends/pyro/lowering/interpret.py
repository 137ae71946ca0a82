"""Interpret: run a flat graph in JAX, operation by operation."""

import operator
from collections.abc import Callable, Collection, Sequence
from typing import Any

import jax
import torch

from pathmix.errors import ProgramError
from pathmix.frontends.pyro.autograd import OwnDerivative
from pathmix.frontends.pyro.flatten import FlatGraph
from pathmix.frontends.pyro.lowering import TABLE
from pathmix.frontends.pyro.lowering.callback import call_torch
from pathmix.frontends.pyro.lowering.dtypes import Stored, as_jax_dtype, as_numpy, stored
from pathmix.frontends.pyro.lowering.indexing import MASKED
from pathmix.frontends.pyro.lowering.own import call_own
from pathmix.frontends.pyro.tape import Node, Shape

# Options that say where a tensor lives, not what it is.
_PLACEMENT = {"device", "layout", "pin_memory", "memory_format", "non_blocking", "generator"}


def interpret(graph: FlatGraph, inputs: Sequence[Any]) -> dict[Node, Any]:
    """The value of every open node of the graph, and of what is known."""
    return interpreter(graph)(*inputs)


def interpreter(graph: FlatGraph, apart: Collection[Node] = ()) -> Callable[..., dict[Node, Any]]:
    """The graph as a function of its inputs, after the values of known nodes that are set apart.

    Known arrays are made now, which takes longer inside a trace.
    """
    operations = graph.open
    # A known mask is kept out of JAX: what it selects has a shape that is known too.
    masks = {source for node in operations if node.target in MASKED for source in node.sources}
    known: dict[Node, Any] = {}
    for node, value in graph.known.items():
        if node in apart:
            continue
        known[node] = as_numpy(value) if value.dtype is torch.bool and node in masks else stored(value)

    def run(*inputs: Any) -> dict[Node, Any]:
        values = {node: v.whole() if isinstance(v, Stored) else v for node, v in known.items()}
        for node, value in zip((*apart, *graph.inputs), inputs, strict=True):
            values.setdefault(node, value)
        for node in operations:
            values[node] = _apply(node, values)
        return values

    return run


def _apply(node: Node, values: dict[Node, Any]) -> Any:
    if isinstance(node.target, OwnDerivative):
        return call_own(node, values, interpret)
    lowering = operator.getitem if node.target is operator.getitem else TABLE.get(node.target)
    if lowering is None:
        return call_torch(node, values)
    arguments = _read(node.args, values)
    options = {key: _read(option, values) for key, option in node.kwargs.items() if key not in _PLACEMENT}
    try:
        found = lowering(*arguments, **options)
        # A lowering may decline what is rare.
        return call_torch(node, values) if found is NotImplemented else _as_typed(node, found)
    except jax.errors.NonConcreteBooleanIndexError as error:
        raise ProgramError(
            f"How many elements the PyTorch operation {node.target} writes depends on a random value. Along "
            "one path every shape is fixed: write all elements with torch.where, or decide with an ordinary "
            "`if` or a loop which elements there are."
        ) from error


def _as_typed(node: Node, result: Any) -> Any:
    """The result in the type that PyTorch gives it: the two promote differently here and there."""
    if not isinstance(node.result, Shape):
        return result
    wanted = as_jax_dtype(node.result.dtype)
    return result if result.dtype == wanted else result.astype(wanted)


def _read(argument: Any, values: dict[Node, Any]) -> Any:
    if isinstance(argument, torch.dtype):
        return as_jax_dtype(argument)
    if isinstance(argument, (tuple, list)):
        return [_read(part, values) for part in argument]
    return values[argument] if isinstance(argument, Node) else argument
