"""Flatten: a PyTorch function as a flat graph of ATen operations, free of writes and of constants.

`functionalize` turns in-place writes into values; `make_fx` writes down the operations. What depends
on no input is computed here, once, and what nothing depends on is dropped.
"""

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.func import functionalize
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg
from torch.overrides import TorchFunctionMode

from pathmix.doors.torch import (
    FakeTensorMode,
    TorchDispatchMode,
    TracingContext,
    functional,
    functorch_level,
    is_functional,
    looked_at,
    make_fx,
    schema_of,
    tracing,
    tree_map_only,
    untraced,
    without_torch_function,
)
from pathmix.errors import HiddenRandomnessError
from pathmix.frontends.pyro.autograd import traced_functions
from pathmix.frontends.pyro.lowering import decompositions
from pathmix.program.source import Source, caller

# Operations whose result is not a tensor: PyTorch looks at the values.
_LOOKS = {torch.ops.aten._local_scalar_dense.default, torch.ops.aten.equal.default}


@dataclass(frozen=True, eq=False)
class FlatGraph:
    """Operations in order; every argument is an input, an earlier operation or a constant."""

    inputs: tuple[Node, ...]
    operations: tuple[Node, ...]
    constants: dict[Node, Any]  # tensors that the operations or the outputs use
    outputs: tuple[Any, ...]  # nodes
    looked_at: tuple[tuple[Node, Source], ...]  # what PyTorch looked at by itself, and where


@dataclass(eq=False)
class _Looks(TorchDispatchMode):
    """Answers library code that turns a traced tensor into a number, and keeps what it looked at."""

    seen: list[tuple[Node, Source]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func not in _LOOKS:
            options = {n: None if n == "generator" else option for n, option in (kwargs or {}).items()}
            with without_torch_function():  # what the program called has been through it
                return func(*args, **options)
        with untraced():
            value = func(*args)
        self.seen += [(node, caller()) for node in looked_at(args)]
        return value


class _Captured(TorchFunctionMode):
    """Lets the program write into tensors made from its data, and into the data: both stay unharmed.

    `functionalize` only follows writes into tensors that it knows of, and it knows of the inputs alone.
    """

    def __init__(self) -> None:
        super().__init__()
        self.level: Any = functorch_level()  # that of `functionalize`; the program may add more
        self.known: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}  # by id, kept alive

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if functorch_level() is None:  # below `functionalize`, where its tensors must not come
            return func(*args, **(kwargs or {}))
        if func is torch.Tensor.tolist:
            return _numbers(args[0])
        positional, named = tree_map_only(torch.Tensor, self._functional, (args, kwargs or {}))
        if getattr(func, "__name__", None) == "__get__":
            plain = func(*args)
            if not isinstance(plain, torch.Tensor):  # requires_grad and the like, which wrapping changes
                return plain
        result = func(*positional, **named)
        if torch.is_grad_enabled():
            return result
        return tree_map_only(torch.Tensor, torch.Tensor.detach, result)  # as torch.no_grad() means it

    def _functional(self, tensor: torch.Tensor) -> torch.Tensor:
        if is_functional(tensor):
            return tensor
        if id(tensor) not in self.known:
            self.known[id(tensor)] = tensor, functional(tensor, self.level)
        return self.known[id(tensor)][1]


def _numbers(tensor: torch.Tensor) -> Any:
    return tensor.item() if tensor.ndim == 0 else [_numbers(part) for part in tensor]


def flatten(function: Callable[..., Sequence[torch.Tensor]], inputs: Sequence[torch.Tensor]) -> FlatGraph:
    """The operations of `function` at these inputs; decisions come out as they do there."""
    looks = _Looks()

    def watched(*values: torch.Tensor) -> list[torch.Tensor]:
        with looks, _Captured(), traced_functions():
            # An output that is an input, or a constant, still needs a node of its own.
            return [torch.clone(torch.as_tensor(output)) for output in function(*values)]

    module = _operations(watched, inputs)
    if any(_writes(node) for node in module.graph.nodes):
        return _fold(*_without_writes(module, looks.seen, inputs))
    return _fold(module, looks.seen)


def _operations(function: Callable[..., Any], inputs: Sequence[torch.Tensor]) -> GraphModule:
    # With a tracing context, shapes and types are noted in one fake mode; making one for each operation
    # would double the time.
    with torch.enable_grad(), tracing(TracingContext(FakeTensorMode(allow_fallback_kernels=True))):
        return make_fx(functionalize(function), decomposition_table=decompositions())(*inputs)


def _writes(node: Node) -> bool:
    schema = schema_of(node.target)
    return schema is not None and schema.is_mutable


def _without_writes(
    module: GraphModule, seen: Sequence[tuple[Node, Source]], inputs: Sequence[torch.Tensor]
) -> tuple[GraphModule, list[tuple[Node, Source]]]:
    """The same once more: `functionalize` does not see the writes inside PyTorch's composite operations."""
    looks: list[Node] = []
    for node, _ in seen:
        with module.graph.inserting_after(node):  # as it was when it was looked at
            looks.append(module.graph.call_function(torch.ops.aten.clone.default, (node,)))
    outputs: Any = _output(module).args[0]
    _output(module).args = ([*outputs, *looks],)
    module.graph.eliminate_dead_code()  # operations that failed, and were done again, are among it
    module.recompile()

    def written(*values: torch.Tensor) -> list[torch.Tensor]:
        with _Captured():
            return module(*values)

    module = _operations(written, inputs)
    nodes: Any = _output(module).args[0]
    _output(module).args = (nodes[: len(outputs)],)
    return module, [(node, where) for node, (_, where) in zip(nodes[len(outputs) :], seen, strict=True)]


def _output(module: GraphModule) -> Node:
    (node,) = module.graph.find_nodes(op="output")
    return node


def _fold(module: GraphModule, looked_at: Sequence[tuple[Node, Source]]) -> FlatGraph:
    nodes = list(module.graph.nodes)
    inputs = tuple(node for node in nodes if node.op == "placeholder")
    output: Any = _output(module)
    varying = set(inputs)
    for node in nodes:
        if any(source in varying for source in node.all_input_nodes):
            varying.add(node)
    looked_at = tuple((node, where) for node, where in looked_at if node in varying)

    needed = {*output.args[0], *(node for node, _ in looked_at)}
    for node in reversed(nodes):
        if node in needed:
            needed.update(node.all_input_nodes)
    values: dict[Node, Any] = {}
    for node in nodes:
        if node in needed and node not in varying:
            values[node] = _compute(module, node, values)
    operations = tuple(n for n in nodes if n in needed and n in varying and n.op == "call_function")
    for node in operations:
        _check_repeatable(node)
    used = {source for node in (*operations, output) for source in node.all_input_nodes}
    return FlatGraph(
        inputs=inputs,
        operations=operations,
        constants={node: value for node, value in values.items() if node in used},
        outputs=tuple(output.args[0]),
        looked_at=looked_at,
    )


def _compute(module: GraphModule, node: Node, values: dict[Node, Any]) -> Any:
    if node.op == "get_attr":
        return operator.attrgetter(str(node.target))(module)
    _check_repeatable(node)
    target: Any = node.target
    return target(*map_arg(node.args, values.__getitem__), **map_arg(node.kwargs, values.__getitem__))


def _check_repeatable(node: Node) -> None:
    if torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()):
        raise HiddenRandomnessError(f"it draws with {node.target} outside of pyro.sample")
