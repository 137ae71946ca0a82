"""What a program can get at: everything to which a way leads from the model, from one object to the next."""

import functools
from collections.abc import Callable, Iterator, Mapping
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

_LIBRARIES = ("functorch", "jax", "numpy", "numpyro", "pathmix", "pyro", "torch")
_MOST = 20_000  # objects


def reachable(model: Callable[..., Any]) -> Iterator[Any]:
    """Libraries are not looked into."""
    waiting, seen = [model], {id(model): model}
    while waiting and len(seen) < _MOST:
        for inner in within(waiting.pop()):
            if id(inner) not in seen:
                seen[id(inner)] = inner  # kept, so that no other one gets its number
                waiting.append(inner)
                yield inner


def within(thing: Any) -> Iterator[Any]:
    """What an object of the user's refers to."""
    match thing:
        case FunctionType():
            for cell in thing.__closure__ or ():
                try:
                    yield cell.cell_contents
                except ValueError:  # it is empty so far
                    continue
            yield from thing.__defaults__ or ()
            yield from (thing.__kwdefaults__ or {}).values()
            yield from _named(thing.__globals__, frozenset(_names(thing.__code__)))
            yield from vars(thing).values()
        case MethodType():
            yield from (thing.__func__, thing.__self__)
        case functools.partial():
            yield from (thing.func, *thing.args, *thing.keywords.values())
        case dict():
            yield from list(thing.values())
        case list() | tuple() | set() | frozenset():
            yield from list(thing)
        case staticmethod() | classmethod():
            yield thing.__func__
        case property():
            yield thing.fget
        case type():
            if not _is_library(thing.__module__):
                yield from (*thing.__bases__, *vars(thing).values())
        case _ if hasattr(thing, "__dict__") and not isinstance(thing, ModuleType):
            yield type(thing)
            yield from list(vars(thing).values())


def _named(space: Mapping[str, Any], names: frozenset[str]) -> Iterator[Any]:
    """What names stand for, and what they do in the modules among that."""
    for name in names.intersection(space):
        value = space[name]
        if not isinstance(value, ModuleType):
            yield value
        elif not _is_library(value.__name__):
            # Without the name that led here, so that modules which name each other come to an end.
            yield from _named(vars(value), names - {name})


def _names(code: CodeType) -> Iterator[str]:
    """What a function refers to by name, those inside of it included."""
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names(inner)


def _is_library(name: str) -> bool:
    return name.partition(".")[0] in _LIBRARIES
