"""Names of the user's own for what PyTorch has: `from torch import equal`, `same = torch.equal` in a closure.

Answering `torch.equal` changes nothing of what such a name stands for: only a mode hears of its calls.
"""

import functools
import sys
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from pathmix.frontends.pyro.lookups import LOOKS

_LOOKS = frozenset(map(id, LOOKS))
_LIBRARIES = ("functorch", "jax", "numpy", "numpyro", "pathmix", "pyro", "torch")
_MOST = 20_000  # objects


def has_own_names(model: Callable[..., Any]) -> bool:
    """Whether a module that is loaded has one, or anything that the model refers to."""
    return _some_module_has(len(sys.modules)) or _refers(model)


@functools.lru_cache(1)
def _some_module_has(loaded: int) -> bool:
    """Asked once for each number of loaded modules."""
    del loaded
    modules = [module for name, module in list(sys.modules.items()) if not _is_library(name)]
    return any(_has(list(getattr(module, "__dict__", {}).values())) for module in modules)


def _refers(model: Any) -> bool:
    """Whether there is a way from one object to the next to such a function."""
    waiting, seen = [model], {id(model): model}
    while waiting and len(seen) < _MOST:
        for inner in _within(waiting.pop()):
            if id(inner) in _LOOKS:
                return True
            if id(inner) not in seen:
                seen[id(inner)] = inner  # kept, so that no other one gets its number
                waiting.append(inner)
    return False


def _within(thing: Any) -> Iterator[Any]:
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
            yield from (
                thing.__globals__[name] for name in _names(thing.__code__) if name in thing.__globals__
            )
            yield from vars(thing).values()
        case MethodType():
            yield from (thing.__func__, thing.__self__)
        case functools.partial():
            yield from (thing.func, *thing.args, *thing.keywords.values())
        case dict():
            yield from thing.values()
        case list() | tuple() | set() | frozenset():
            yield from thing
        case staticmethod() | classmethod():
            yield thing.__func__
        case ModuleType() | type():
            if not _is_library(thing.__name__ if isinstance(thing, ModuleType) else thing.__module__):
                yield from list(vars(thing).values())
        case _ if hasattr(thing, "__dict__"):
            yield type(thing)
            yield from list(vars(thing).values())


def _names(code: CodeType) -> Iterator[str]:
    """What a function refers to by name, those inside of it included."""
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names(inner)


def _is_library(name: str) -> bool:
    return name.partition(".")[0] in _LIBRARIES


def _has(values: Iterable[Any]) -> bool:
    return not _LOOKS.isdisjoint(map(id, values))
