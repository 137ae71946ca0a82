"""Tape: the ATen operations that a PyTorch function runs, written down while it runs.

Only what depends on the inputs is written down, or on random numbers. The rest has its value already, and
that is all that is needed of it. (`make_fx` does the same for compilers, with stand-ins for every tensor, at
1 ms an operation; this takes 0.03 ms.)
"""

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from pathmix.doors.torch import (
    MARK,
    DispatchMode,
    functionalized,
    is_composite,
    plain_of,
    schema_of,
    without_torch_function,
)
from pathmix.frontends.pyro.ranges import LOOKUPS, Place, in_range
from pathmix.program.source import Source, caller

# Operations whose result is not a tensor: PyTorch looks at the values.
_LOOKS = {torch.ops.aten._local_scalar_dense.default, torch.ops.aten.equal.default}
# What they give is whatever was in memory, and would differ from trace to trace.
_EMPTY = {
    torch.ops.aten.empty,
    torch.ops.aten.empty_like,
    torch.ops.aten.empty_permuted,
    torch.ops.aten.empty_strided,
    torch.ops.aten.new_empty,
    torch.ops.aten.new_empty_strided,
}
# What they give depends on the shapes of tensors alone.
_SHAPE_ONLY = {
    torch.ops.aten.zeros_like,
    torch.ops.aten.ones_like,
    torch.ops.aten.full_like,
    torch.ops.aten.new_zeros,
    torch.ops.aten.new_ones,
    torch.ops.aten.new_full,
}


class Look(NamedTuple):
    """PyTorch looked at what a node gives: for a number, or to make a shape of it."""

    node: "Node"
    source: Source
    for_shape: bool


class Shape(NamedTuple):
    """What is kept of a result."""

    shape: tuple[int, ...]
    dtype: torch.dtype


@dataclass(eq=False, slots=True)
class Node:
    """An operation, an input or a constant (without a target). Its arguments have nodes for tensors."""

    target: Any = None
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    result: Any = None  # a shape, or a tuple of them
    value: Any = None  # where it depends on pinned inputs only
    tape: Any = None  # of everything but constants
    is_drawn: bool = False  # it depends on random numbers that no site draws
    _sources: "list[Node] | None" = None

    @property
    def sources(self) -> "list[Node]":
        """The nodes among the arguments, each once."""
        if self._sources is None:
            self._sources = list(dict.fromkeys(_nodes((self.args, *self.kwargs.values()))))
        return self._sources

    @property
    def is_random(self) -> bool:
        return hasattr(self.target, "tags") and _facts(self.target).is_random


def replaced(arguments: Any, kind: type, function: Callable[[Any], Any]) -> Any:
    """Arguments of an operation, with the function applied to what is of a kind in them."""
    if isinstance(arguments, kind):
        return function(arguments)
    if type(arguments) in (tuple, list):
        return type(arguments)([replaced(part, kind, function) for part in arguments])
    if type(arguments) is dict:
        return {name: replaced(part, kind, function) for name, part in arguments.items()}
    return arguments


class Tape(DispatchMode):
    """While active, operations on the inputs are written down.

    `rules` write some operations in terms of others. `inside` gets what says whether numbers are in range by
    which something is looked up.
    """

    def __init__(self, rules: Mapping[Any, Callable[..., Any]], inside: list[Tensor] | None = None) -> None:
        super().__init__()
        self.rules, self.inside = rules, inside
        self.operations: list[Node] = []
        self.constants: dict[Node, Tensor] = {}
        self.looked_at: list[Look] = []  # what PyTorch looked at itself
        self._known: dict[int, Node] = {}  # constants by id; `constants` keeps them alive
        self._may_write = True

    def input(self, tensor: Tensor, *, is_pinned: bool = False) -> Node:
        """Follow a tensor. Along one path, a pinned one has one value, and so has what it leads to."""
        node = Node(result=_shape(tensor), value=tensor.clone() if is_pinned else None, tape=self)
        setattr(tensor, MARK, node)
        return node

    def node(self, tensor: Tensor) -> Node:
        """What a tensor is on this tape. A tensor that depends on nothing is a constant."""
        node = self._marked(tensor)
        if node is None and (node := self._known.get(id(tensor))) is None:
            node = self._known[id(tensor)] = Node()
            self.constants[node] = tensor
        return node

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        options = kwargs or {}
        if "generator" in options:
            options = {**options, "generator": None}
        facts = _facts(func)
        with without_torch_function():  # what the program called has been through it
            marked = self._marks((*args, *options.values()), [])
            if facts.looks:
                self.looked_at += [Look(node, caller(), for_shape=False) for node in marked]
                return func(*args, **options)
            if facts.makes_shape and marked:
                shaping = self._marks(_shaping(func, args, options), [])
                self.looked_at += [Look(node, caller(), for_shape=True) for node in shaping]
            if facts.lookup is not None and marked and self.inside is not None:
                self._check_range(facts.lookup(*args, **options), self.inside)
            if facts.writes and not self._may_write:
                raise _Written
            # A network that is made in the program draws its weights; priors take their shapes from them.
            by_shape = facts.by_shape and any(node.is_drawn for node in marked)
            if by_shape or not (marked or facts.is_random):
                result = func(*args, **options)
                return result.zero_() if facts.is_empty else result
            is_known = not facts.is_random and all(node.value is not None for node in marked)
            # What is known is read by nobody, so it need not be in simple operations.
            found = NotImplemented if is_known else self._by_rule(func, args, options)
            if found is not NotImplemented:
                return found
            return self._written_down(func, args, options, is_known=is_known)

    def _check_range(self, places: Iterator[Place], inside: list[Tensor]) -> None:
        """Of numbers that are not known."""
        for place in places:
            node = self._marked(place[0])
            if node is not None and node.value is None:
                with self:
                    inside.append(in_range(place))

    def write_down(self, operation: Callable[..., Any], tensors: list[Tensor]) -> Any:
        """The result of an operation that PyTorch does not know of."""
        with without_torch_function():
            if not (marked := self._marks(tensors, [])):
                return operation(*tensors)
            is_known = all(node.value is not None for node in marked)
            return self._written_down(operation, tensors, {}, is_known=is_known)

    def _marked(self, tensor: Tensor) -> Node | None:
        node = getattr(tensor, MARK, None)
        return node if node is not None and node.tape is self else None

    def _marks(self, arguments: Any, found: list[Node]) -> list[Node]:
        """What the tensors among the arguments are on this tape."""
        for argument in arguments:
            if isinstance(argument, Tensor):
                if (node := self._marked(argument)) is not None:
                    found.append(node)
            elif isinstance(argument, (tuple, list)):
                self._marks(argument, found)
        return found

    def _as_nodes(self, argument: Any) -> Any:
        if isinstance(argument, Tensor):
            return self.node(argument)
        if type(argument) in (tuple, list):
            return type(argument)([self._as_nodes(part) for part in argument])
        return argument

    def _written_down(self, func: Any, args: Any, options: dict[str, Any], *, is_known: bool) -> Any:
        named = {name: self._as_nodes(option) for name, option in options.items()}
        node = Node(func, tuple([self._as_nodes(argument) for argument in args]), named, tape=self)
        result = func(*args, **options)
        if not isinstance(result, (Tensor, tuple, list)):  # of a check of values, or of shapes
            return result
        self.operations.append(node)
        node.value = result if is_known else None
        node.is_drawn = node.is_random or any(source.is_drawn for source in node.sources)
        if isinstance(result, Tensor):
            node.result = _shape(result)
            setattr(result, MARK, node)
            return result
        parts = tuple(result)
        node.result = tuple(_shape(part) for part in parts)
        for position, part in enumerate(parts):
            known = part if is_known else None
            item = Node(
                operator.getitem, (node, position), {}, node.result[position], known, self, node.is_drawn
            )
            self.operations.append(item)
            setattr(part, MARK, item)
        return result

    def _by_rule(self, func: Any, args: Any, options: dict[str, Any]) -> Any:
        rule = self.rules.get(func) or (func.decompose if _facts(func).is_composite else None)
        if rule is None:
            return NotImplemented
        operations, looks = len(self.operations), len(self.looked_at)
        before, self._may_write = self._may_write, False
        try:
            with self:
                return rule(*args, **options)
        except _Written:  # into tensors of its own
            del self.operations[operations:], self.looked_at[looks:]
            self._may_write = True
            with self:
                return functionalized(lambda *arguments: rule(*arguments, **options), *args)
        finally:
            self._may_write = before


class _Written(BaseException):
    """A rule writes into a tensor."""


def is_open(tensor: Tensor) -> bool:
    """Whether a tensor depends on inputs of a tape that are not pinned."""
    node = getattr(plain_of(tensor), MARK, None)
    return node is not None and node.value is None


def is_drawn(tensor: Tensor) -> bool:
    """Whether a tensor depends on random numbers that no site draws."""
    node = getattr(plain_of(tensor), MARK, None)
    return node is not None and node.is_drawn


def _shape(tensor: Tensor) -> Shape:
    return Shape(tensor.shape, tensor.dtype)


def _shaping(operation: Any, args: Any, options: dict[str, Any]) -> list[Any]:
    """The arguments that the shape of the result is made of."""
    packet = operation.overloadpacket
    if packet is torch.ops.aten.index:  # x[mask]
        return [part for part in args[1] if part is not None and part.dtype in (torch.bool, torch.uint8)]
    if packet is torch.ops.aten.masked_select:
        return [*args[1:], *options.values()]
    return [args[0]] if args else [*options.values()]


def tensors_in(arguments: Any) -> Iterator[Tensor]:
    for argument in arguments:
        if isinstance(argument, Tensor):
            yield argument
        elif isinstance(argument, (tuple, list)):
            yield from tensors_in(argument)


def _nodes(arguments: Any) -> Iterator[Node]:
    for argument in arguments:
        if isinstance(argument, Node):
            yield argument
        elif isinstance(argument, (tuple, list)):
            yield from _nodes(argument)


def makes_shape(operation: Any) -> bool:
    """Whether the numbers in its arguments say how many elements there are in its result."""
    return torch.Tag.dynamic_output_shape in getattr(operation, "tags", ())


class _Facts(NamedTuple):
    """What matters of an operation."""

    looks: bool
    writes: bool
    is_random: bool
    is_empty: bool
    by_shape: bool
    makes_shape: bool
    is_composite: bool
    lookup: Callable[..., Iterator[Place]] | None


@cache
def _facts(operation: Any) -> _Facts:
    schema, packet = schema_of(operation), getattr(operation, "overloadpacket", None)
    tags = getattr(operation, "tags", ())
    return _Facts(
        looks=operation in _LOOKS,
        writes=schema is not None and schema.is_mutable,
        is_random=torch.Tag.nondeterministic_seeded in tags,
        is_empty=packet in _EMPTY,
        by_shape=packet in _SHAPE_ONLY,
        makes_shape=makes_shape(operation),
        is_composite=is_composite(operation),
        lookup=LOOKUPS.get(packet),
    )
