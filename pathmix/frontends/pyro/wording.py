"""What the file of a program says: what is in its functions, and whether they ask for types.

Continuous numbers are tensors here; a program that tells floats from tensors goes another way than in Pyro.
"""

import ast
import inspect
import os
from collections.abc import Callable
from functools import lru_cache
from types import FunctionType
from typing import Any

import torch

_TYPES = {"float", "int", "complex", "Number", "Real", "Tensor"}


def types_remark(model: Callable[..., Any]) -> str | None:
    """What to say of a program with continuous numbers that tells numbers from tensors by their types."""
    function = function_of(model)
    lines = [] if function is None else [n.lineno for n in inside_functions(function) if _tells_types(n)]
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


def inside_functions(function: FunctionType) -> list[Any]:
    """All that is said in functions of its file, as far as there is a text."""
    try:
        return _said("".join(inspect.findsource(function)[0]))
    except (OSError, SyntaxError):
        return []


@lru_cache(4)
def _said(text: str) -> list[Any]:
    tree = ast.parse(text)
    functions = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.Lambda))]
    bodies = [part for one in functions for part in (one.body if isinstance(one.body, list) else [one.body])]
    return [node for part in bodies for node in ast.walk(part)]


def function_of(model: Any) -> FunctionType | None:
    """The function of a partial, of a decorated one, of a method, of a module or any other object."""
    inner = inspect.unwrap(getattr(model, "func", model))
    for _ in range(8):
        if isinstance(inner, FunctionType):
            return inner
        called = type(inner).forward if isinstance(inner, torch.nn.Module) else type(inner).__call__
        inner = getattr(inner, "__func__", None) or getattr(inner, "fn", None) or called
    return None
