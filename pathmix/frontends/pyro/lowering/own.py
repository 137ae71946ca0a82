"""Functions with a derivative of their own: both passes in JAX, or called back where they leave PyTorch."""

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import jax
import torch

from pathmix.frontends.pyro.autograd import OwnDerivative
from pathmix.frontends.pyro.flatten import FlatGraph, flatten
from pathmix.frontends.pyro.lookups import Lookups
from pathmix.frontends.pyro.lowering.callback import call_torch
from pathmix.frontends.pyro.lowering.derivatives import with_derivative
from pathmix.frontends.pyro.tape import Node, Shape

Interpret = Callable[[FlatGraph, Any], Mapping[Node, Any]]


def call_own(node: Node, values: Mapping[Node, Any], interpret: Interpret) -> Any:
    """Values and gradients as the function gives them."""
    traced = _passes(node.target)
    if traced is None:
        return call_torch(node, values)
    forward, backward = (_as_function(graph, interpret) for graph in traced)
    structure = jax.tree.structure(node.result, is_leaf=lambda part: isinstance(part, Shape))
    found = with_derivative(forward, backward, [values[source] for source in node.args])
    return jax.tree.unflatten(structure, found)


def _as_function(graph: FlatGraph, interpret: Interpret) -> Callable[..., list[Any]]:
    def function(*arrays: Any) -> list[Any]:
        found = interpret(graph, arrays)
        return [found[output] for output in graph.outputs]

    return function


def _passes(own: OwnDerivative) -> tuple[FlatGraph, FlatGraph] | None:
    """Both passes as graphs; None if either needs numbers: NumPy's functions do."""
    examples = [tensor.detach().clone() for tensor in own.examples]
    try:
        forward = flatten(_unseen(own.forward), examples)
        weights = [torch.ones_like(value) for value in forward.values if value.is_floating_point()]
        backward = flatten(_unseen(own.backward), [*examples, *weights])
    except Exception:  # PyTorch runs what it cannot trace
        return None
    return None if forward.looked_at or backward.looked_at else (forward, backward)


def _unseen(function: Callable[..., Any]) -> Callable[..., Any]:
    def watched(*tensors: torch.Tensor) -> Any:
        with Lookups(_Refusing()):
            return function(*tensors)

    return watched


class _Refusing:
    """Nobody may look at the numbers."""

    is_listening = True

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("a pass looks at numbers")

    decide = shown = is_continuous = overlook = _refuse
