"""What a callable takes along beside its source: closures, defaults, arguments of a partial, attributes."""

import dis
import inspect
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any


def source_of(model: Callable[..., Any]) -> str | None:
    """Of the function, or of an object's class; None where there is none to look at."""
    inner = inspect.unwrap(getattr(model, "func", model))
    try:
        return inspect.getsource(inner if inspect.isroutine(inner) else type(inner))
    except (OSError, TypeError):
        return None


def is_installed(function: Any) -> bool:
    """Whether it is a function of a library, whose source may be another in every version."""
    inner = inspect.unwrap(function) if callable(function) else None
    return inspect.isfunction(inner) and "-packages" in inner.__code__.co_filename


def taken_along(model: Any) -> Iterator[tuple[str, Any]]:
    """By name. What runs write is left out: it says where a program is, and not what it is.

    That is what code assigns to, private attributes, and lists, dicts and sets, which programs keep notes in.
    """
    wrapped = getattr(model, "__wrapped__", None)
    if isinstance(model, partial):
        yield from ((f"argument {number}", value) for number, value in enumerate(model.args))
        yield from model.keywords.items()
        yield from taken_along(model.func)
    elif inspect.ismethod(model):
        yield from _attributes(model.__self__, model.__func__)
        yield from taken_along(model.__func__)
    elif inspect.isfunction(model):
        yield from ((f"default {number}", value) for number, value in enumerate(model.__defaults__ or ()))
        yield from (model.__kwdefaults__ or {}).items()
        yield from _constants(_cells(model), model)
    elif wrapped is None and not inspect.isbuiltin(model):
        yield from _attributes(model, inspect.getattr_static(type(model), "__call__", None))
    if wrapped is not None:
        yield from taken_along(wrapped)


def _cells(function: Any) -> Iterator[tuple[str, Any]]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # nothing was assigned to it so far
            continue


def _attributes(owner: Any, method: Any) -> Iterator[tuple[str, Any]]:
    public = ((name, value) for name, value in getattr(owner, "__dict__", {}).items() if name[0] != "_")
    yield from _constants(public, method)


def _constants(named: Iterator[tuple[str, Any]], code_of: Any) -> Iterator[tuple[str, Any]]:
    code = getattr(code_of, "__code__", None)
    written = {
        one.argval
        for one in (() if code is None else dis.get_instructions(code))
        if one.opname in ("STORE_DEREF", "STORE_ATTR")
    }
    yield from ((name, value) for name, value in sorted(named) if name not in written and _is_constant(value))


def _is_constant(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_constant, value))
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return not isinstance(value, torch.nn.Parameter)  # the program's own
    simple = (type(None), bool, int, float, complex, str, bytes, partial)
    return isinstance(value, simple) or hasattr(value, "__array__") or inspect.isroutine(value)
