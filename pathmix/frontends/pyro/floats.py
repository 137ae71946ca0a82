"""`float(x)` of a random value stays random, as `x.item()` does.

Whatever `__float__` gives, Python makes a true number of it. So while a program runs, its module has a
`float` of its own, unless functions there use that name for more than calls (`dtype=float`).
"""

import ast
import builtins
import dis
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FunctionType
from typing import Any
from weakref import WeakKeyDictionary

import torch

from pathmix.frontends.pyro.wording import function_of, inside_functions

_NAME = "float"
_eligible: WeakKeyDictionary[FunctionType, bool] = WeakKeyDictionary()


@contextmanager
def random_floats(model: Callable[..., Any]) -> Iterator[None]:
    """Within, `float` gives a tensor for a continuous one, in the module of the model."""
    function = function_of(model)
    if function is None or not _is_eligible(function):
        yield
        return
    names = function.__globals__
    names[_NAME] = _float
    try:
        yield
    finally:
        names.pop(_NAME, None)


def _float(value: Any = 0.0, /) -> Any:
    is_number = isinstance(value, torch.Tensor) and value.is_floating_point() and value.numel() == 1
    return value.item() if is_number else builtins.float(value)


def _is_eligible(function: FunctionType) -> bool:
    """Whether functions of its module call `float`, and do nothing else with it."""
    if function not in _eligible:
        uses = [use for code in _codes(function) for use in _uses(code)]
        is_free = function.__globals__.get(_NAME, _float) is _float
        _eligible[function] = is_free and bool(uses) and all(uses) and _only_called(function)
    return _eligible[function]


def _only_called(function: FunctionType) -> bool:
    """Whether the functions of its file do, those too to which no name leads; as far as there is a text."""
    inside = inside_functions(function)
    called = {id(node.func) for node in inside if isinstance(node, ast.Call)}
    return all(id(node) in called for node in inside if isinstance(node, ast.Name) and node.id == _NAME)


def _codes(function: FunctionType) -> Iterator[CodeType]:
    yield from _nested(function.__code__)
    for value in list(function.__globals__.values()):
        members = list(vars(value).values()) if isinstance(value, type) else [value]
        for member in members:
            if isinstance(member, FunctionType) and member.__globals__ is function.__globals__:
                yield from _nested(member.__code__)


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested(constant)


def _uses(code: CodeType) -> Iterator[bool]:
    """Of the name: which are calls. Python marks the loading of what it calls by the lowest bit."""
    if _NAME in code.co_names:
        for instruction in dis.get_instructions(code):
            if instruction.opname == "LOAD_GLOBAL" and instruction.argval == _NAME:
                yield bool((instruction.arg or 0) & 1)
