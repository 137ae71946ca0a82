"""Interpret: run a flat graph in JAX, operation by operation."""

import operator
from collections.abc import Sequence
from typing import Any

import torch
from torch.fx import Node

from pathmix.frontends.pyro.flatten import FlatGraph
from pathmix.frontends.pyro.lowering import TABLE
from pathmix.frontends.pyro.lowering.callback import call_torch
from pathmix.frontends.pyro.lowering.dtypes import as_jax, as_jax_dtype

# Options that say where a tensor lives, not what it is.
_PLACEMENT = {"device", "layout", "pin_memory", "memory_format", "non_blocking", "generator"}


def interpret(graph: FlatGraph, inputs: Sequence[Any]) -> dict[Node, Any]:
    """The value of every node of the graph."""
    values: dict[Node, Any] = dict(zip(graph.inputs, inputs, strict=True))
    values.update({node: _constant(value) for node, value in graph.constants.items()})
    for node in graph.operations:
        arguments = _read(node.args, values)
        options = {k: _read(v, values) for k, v in node.kwargs.items() if k not in _PLACEMENT}
        values[node] = _apply(node, arguments, options)
    return values


def _apply(node: Node, arguments: Any, options: dict[str, Any]) -> Any:
    if node.target is operator.getitem:
        return _as_typed(node, arguments[0][arguments[1]])
    lowering = TABLE.get(node.target)
    if lowering is None:
        return call_torch(node, arguments, options)
    return _as_typed(node, lowering(*arguments, **options))


def _as_typed(node: Node, result: Any) -> Any:
    """The result in the type that PyTorch gives it: the two promote differently here and there."""
    meta = node.meta.get("tensor_meta")
    dtype = getattr(meta, "dtype", None)
    if dtype is None or isinstance(result, (tuple, list)):
        return result
    wanted = as_jax_dtype(dtype)
    return result if result.dtype == wanted else result.astype(wanted)


def _constant(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return as_jax(value)
    if isinstance(value, (tuple, list)):
        return type(value)(_constant(part) for part in value)
    return value


def _read(argument: Any, values: dict[Node, Any]) -> Any:
    if isinstance(argument, Node):
        return values[argument]
    if isinstance(argument, (tuple, list)):
        return [_read(part, values) for part in argument]
    if isinstance(argument, torch.dtype):
        return as_jax_dtype(argument)
    return argument
