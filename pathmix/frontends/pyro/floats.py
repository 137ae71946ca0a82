"""`float(x)` of a random value stays random, as `x.item()` does.

Whatever `__float__` gives, Python makes a true number of it. So while a program runs, its module has a
`float` of its own, unless functions there use that name for more than calls (`dtype=float`).
"""

import ast
import builtins
import dis
import inspect
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any
from weakref import WeakKeyDictionary

import torch

_NAME = "float"
_TYPES = {"float", "int", "complex", "Number", "Real", "Tensor"}
_eligible: WeakKeyDictionary[FunctionType, bool] = WeakKeyDictionary()


@contextmanager
def random_floats(model: Callable[..., Any]) -> Iterator[None]:
    """Within, `float` gives a tensor for a continuous one, in the module of the model."""
    function = _function(model)
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


def types_remark(model: Callable[..., Any]) -> str | None:
    """What to say of a program with continuous numbers that tells numbers from tensors by their types."""
    function = _function(model)
    lines = [] if function is None else [n.lineno for n in _inside_functions(function) if _tells_types(n)]
    if function is None or not lines:
        return None
    place = f"{os.path.basename(function.__code__.co_filename)}:{min(lines)}"
    return (
        "x.item() and float(x) of continuous values are tensors here, where Pyro has floats, and the program "
        f"asks for types at {place}. Where that is such a value, it goes another way than in Pyro."
    )


def _tells_types(node: Any) -> bool:
    if isinstance(node, ast.MatchClass):
        return _last_name(node.cls) in _TYPES
    if isinstance(node, ast.Compare):
        asks = any(isinstance(part, ast.Call) and _last_name(part.func) == "type" for part in ast.walk(node))
        return asks and any(_last_name(part) in _TYPES for part in ast.walk(node))
    if not isinstance(node, ast.Call) or _last_name(node.func) not in ("isinstance", "is_tensor"):
        return False
    wanted = [part for argument in node.args[1:] for part in ast.walk(argument)]
    return not wanted or any(_last_name(part) in _TYPES for part in wanted)


def _last_name(node: Any) -> str | None:
    """Of a name, or an attribute."""
    return getattr(node, "id", None) or getattr(node, "attr", None)


@lru_cache(16)
def _inside_functions(function: FunctionType) -> list[Any]:
    """All that is said in functions of its file, as far as there is a text."""
    try:
        tree = ast.parse("".join(inspect.findsource(function)[0]))
    except (OSError, SyntaxError):
        return []
    functions = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.Lambda))]
    bodies = [part for one in functions for part in (one.body if isinstance(one.body, list) else [one.body])]
    return [node for part in bodies for node in ast.walk(part)]


def _function(model: Any) -> FunctionType | None:
    """The function of a partial, of a decorated one, of a method, of a module or any other object."""
    inner = inspect.unwrap(getattr(model, "func", model))
    for _ in range(8):
        if isinstance(inner, FunctionType):
            return inner
        called = type(inner).forward if isinstance(inner, torch.nn.Module) else type(inner).__call__
        inner = getattr(inner, "__func__", None) or getattr(inner, "fn", None) or called
    return None


def _is_eligible(function: FunctionType) -> bool:
    """Whether functions of its module call `float`, and do nothing else with it."""
    if function not in _eligible:
        uses = [use for code in _codes(function) for use in _uses(code)]
        is_free = function.__globals__.get(_NAME, _float) is _float
        _eligible[function] = is_free and bool(uses) and all(uses) and _only_called(function)
    return _eligible[function]


def _only_called(function: FunctionType) -> bool:
    """Whether the functions of its file do, those too to which no name leads; as far as there is a text."""
    inside = _inside_functions(function)
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
