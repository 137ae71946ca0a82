"""Flatten: a PyTorch function as a flat graph of ATen operations, free of writes and of constants.

PyTorch's functionalization turns in-place writes into values; the tape writes down the operations. What
depends on no input is a constant, and what nothing depends on is dropped.
"""

import hashlib
import zlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch.nn.functional import binary_cross_entropy_with_logits
from torch.overrides import TorchFunctionMode

from pathmix.doors.torch import functional, functionalized, is_functional, registered_again
from pathmix.errors import HiddenRandomnessError
from pathmix.frontends.pyro.autograd import traced_functions
from pathmix.frontends.pyro.lowering import decompositions
from pathmix.frontends.pyro.lowering.dtypes import once
from pathmix.frontends.pyro.tape import Look, Node, Tape, replaced

_LARGE = 4_096  # bytes: of data, a check of its numbers is enough to see that they change


@dataclass(frozen=True, eq=False)
class FlatGraph:
    """Operations in order; every argument is an input, an earlier operation or a constant."""

    inputs: tuple[Node, ...]
    operations: tuple[Node, ...]
    constants: dict[Node, torch.Tensor]  # that the operations or the outputs use
    outputs: tuple[Node, ...]
    values: tuple[torch.Tensor, ...]  # of the outputs, at the inputs of the trace
    looked_at: tuple[Look, ...]  # what PyTorch looked at by itself

    @cached_property
    def open(self) -> list[Node]:
        """The operations that depend on inputs which are not pinned."""
        return [node for node in self.operations if node.value is None]

    @cached_property
    def known(self) -> dict[Node, Any]:
        """The values that the open operations and the outputs use: constants, and what pinned inputs give."""
        used = dict.fromkeys([*(source for node in self.open for source in node.sources), *self.outputs])
        values = {node: self.constants.get(node, node.value) for node in used}
        return {node: value for node, value in values.items() if value is not None}

    @property
    def fingerprint(self) -> str:
        """The same for traces of the same operations on the same numbers."""
        numbers = {node: f"%{i}" for i, node in enumerate((*self.inputs, *self.constants, *self.operations))}
        digest = hashlib.blake2b()
        # By where numbers lie, which are kept for as long: many constants are views of the data.
        checked: dict[tuple[int, int], tuple[bytes, np.ndarray]] = {}
        for value in self.constants.values():
            digest.update(f"{value.dtype} {tuple(value.shape)} ".encode())
            content = np.ascontiguousarray(once(value, copy=False))
            if content.nbytes < _LARGE:
                digest.update(content.data)
                continue
            place = content.ctypes.data, content.nbytes
            if place not in checked:
                checked[place] = zlib.crc32(content.data).to_bytes(4), content
            digest.update(checked[place][0])
        for node in self.operations:
            digest.update(repr((node.target, replaced((node.args, node.kwargs), Node, numbers.get))).encode())
        digest.update(repr([numbers[node] for node in self.outputs]).encode())
        return digest.hexdigest()


_NUMBERS = {int, float, bool, type(None)}
_OF_LOGITS = {torch.binary_cross_entropy_with_logits, binary_cross_entropy_with_logits}
_ARITHMETIC = {
    "add", "sub", "subtract", "mul", "multiply", "div", "divide", "true_divide", "pow", "addcmul", "addcdiv",
}  # fmt: skip
_IN_PLACE = {"__iadd__", "__isub__", "__imul__", "__itruediv__", "__ipow__"}


class _Captured(TorchFunctionMode):
    """Lets the program write into tensors made from its data, and into the data: both stay unharmed.

    Functionalization only follows writes into tensors that it knows of: inputs, and what is made inside.
    """

    def __init__(self) -> None:
        super().__init__()
        self.known: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}  # by id, kept alive

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.Tensor.tolist:
            return _numbers(args[0])
        positional, named = self._followed(args), kwargs or {}
        if named:
            named = replaced(named, torch.Tensor, self._functional)
        if func in _OF_LOGITS:
            positional, named = _with_numbers(*positional, **named)
        elif _is_write(func):
            _check_cast(*positional, *named.values())
        if getattr(func, "__name__", None) == "__get__":
            plain = func(*args)
            if not isinstance(plain, torch.Tensor):  # requires_grad and the like, which wrapping changes
                return plain
        result = func(*positional, **named)
        if torch.is_grad_enabled():
            return result
        return replaced(result, torch.Tensor, torch.Tensor.detach)  # as torch.no_grad() means it

    def _followed(self, arguments: Any) -> Any:
        """Most calls have nothing but tensors that are known already, and numbers."""
        if all(type(a) in _NUMBERS or (isinstance(a, torch.Tensor) and is_functional(a)) for a in arguments):
            return arguments
        return replaced(arguments, torch.Tensor, self._functional)

    def _functional(self, tensor: torch.Tensor) -> torch.Tensor:
        if is_functional(tensor):
            return tensor
        if id(tensor) not in self.known:
            self.known[id(tensor)] = tensor, functional(tensor)
        return self.known[id(tensor)][1]


def _with_numbers(logits: Any, target: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
    """Whole numbers observed. PyTorch subtracts from them in place, and functionalization would cut that."""
    return (logits, target.to(torch.result_type(logits, target)), *args), kwargs


def _is_write(func: Any) -> bool:
    name = getattr(func, "__name__", "")
    return name in _IN_PLACE if name.startswith("__") else name.endswith("_") and name[:-1] in _ARITHMETIC


def _check_cast(target: torch.Tensor, *others: Any) -> None:
    """PyTorch writes no fractions into whole numbers. Functionalization cuts them off."""
    for other in others:
        if not isinstance(other, (torch.Tensor, float)):
            continue
        found = torch.result_type(target, other)
        if not torch.can_cast(found, target.dtype):
            raise RuntimeError(f"result type {found} can't be cast to the desired output type {target.dtype}")


def _numbers(tensor: torch.Tensor) -> Any:
    return tensor.item() if tensor.ndim == 0 else [_numbers(part) for part in tensor]


def flatten(
    function: Callable[..., Sequence[torch.Tensor]],
    inputs: Sequence[torch.Tensor],
    pinned: Collection[int] = (),
    inside: list[torch.Tensor] | None = None,
) -> FlatGraph:
    """The operations of `function` at these inputs; decisions come out as they do there.

    The inputs at the places `pinned` have these values for good. While the function runs, `inside` gets what
    says whether the numbers are in range by which it looks something up.
    """

    tape = Tape(decompositions(), inside)

    def watched(*values: torch.Tensor) -> list[torch.Tensor]:
        with _Captured(), traced_functions(tape.write_down):
            return [torch.as_tensor(output) for output in function(*values)]

    nodes = tuple(tape.input(tensor, is_pinned=i in pinned) for i, tensor in enumerate(inputs))
    with torch.enable_grad(), registered_again(), tape:
        outputs = functionalized(watched, *inputs)
    return _pruned(tape, nodes, outputs)


def _pruned(tape: Tape, inputs: tuple[Node, ...], values: Sequence[torch.Tensor]) -> FlatGraph:
    varying = set(inputs)
    for node in tape.operations:
        if not varying.isdisjoint(node.sources):
            varying.add(node)
    looked_at = tuple(look for look in tape.looked_at if look.node in varying)
    outputs = tuple(map(tape.node, values))
    needed = {*outputs, *(look.node for look in looked_at)}
    for node in reversed(tape.operations):
        if node in needed:
            needed.update(node.sources)
    operations = tuple(node for node in tape.operations if node in needed)
    for node in operations:
        if node.is_random:
            raise HiddenRandomnessError(f"it draws with {node.target} outside of pyro.sample")
    return FlatGraph(
        inputs=inputs,
        operations=operations,
        constants={node: value for node, value in tape.constants.items() if node in needed},
        outputs=outputs,
        values=tuple(values),
        looked_at=looked_at,
    )
