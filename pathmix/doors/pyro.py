"""Pyro beyond its public interface."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from pyro.nn import PyroModule, PyroParam
from pyro.ops.special import _SafeLog
from pyro.poutine.indep_messenger import IndepMessenger
from pyro.poutine.messenger import Messenger
from pyro.poutine.runtime import _PYRO_STACK
from pyro.poutine.subsample_messenger import SubsampleMessenger
from pyro.poutine.util import site_is_factor, site_is_subsample

__all__ = [
    "MESSAGE",
    "Messenger",
    "SafeLog",
    "active_plates",
    "handlers",
    "module_parameters",
    "site_is_factor",
    "site_is_subsample",
    "subsampling",
    "watch",
]

# The parts of a `sample` message that are read or written.
MESSAGE = (
    "type", "name", "fn", "args", "kwargs", "value", "is_observed", "infer", "cond_indep_stack", "mask",
    "scale", "done", "stop",
)  # fmt: skip
SafeLog = _SafeLog  # its derivative is written by hand, which a trace of its forward pass does not see

# The indices of a subsampled plate of a name, a size and a subsample size; None for all of it.
Choice = Callable[[str, Any, Any], torch.Tensor | None]
_choice: ContextVar[Choice | None] = ContextVar("pathmix_choice", default=None)


class _Watch(Messenger):
    def __init__(self, on_statement: Callable[[str], None]) -> None:
        super().__init__()
        self.on_statement = on_statement

    def _process_message(self, msg: Any) -> None:
        self.on_statement(str(msg["name"]))


def watch(on_statement: Callable[[str], None]) -> AbstractContextManager[Any]:
    """Inside, `on_statement` is told the name of every statement."""
    return _Watch(on_statement)


def handlers() -> list[Any]:
    """The handlers around the present call: under the user's own, a run would be part of their program."""
    return list(_PYRO_STACK)


def active_plates() -> list[str]:
    """Names of the plates around the present statement: an error tells of them."""
    return [handler.name for handler in handlers() if isinstance(handler, IndepMessenger)]


@contextmanager
def module_parameters(used: Callable[[str, Any, Any], None]) -> Iterator[None]:
    """Inside, told of parameters that modules were given inside and use: the name, what was given, the value.

    The store keeps them by name, and may have that of another module with the same one.
    """
    given: dict[tuple[int, str], tuple[Any, Any]] = {}  # with the module, which is kept alive
    set_one, get_one = PyroModule.__setattr__, PyroModule.__getattr__

    def give(self: Any, name: str, value: Any) -> None:
        if isinstance(value, PyroParam):
            given[id(self), name] = self, value.init_value
        elif isinstance(value, torch.Tensor) and name in self.__dict__.get("_pyro_params", ()):
            given[id(self), name] = self, value
        set_one(self, name, value)

    def get(self: Any, name: str) -> Any:
        value = get_one(self, name)
        is_kept = self.__dict__["_pyro_context"].active  # elsewhere a module has what it was given
        if (id(self), name) in given and is_kept and name in self.__dict__["_pyro_params"]:
            used(self._pyro_get_fullname(name), given[id(self), name][1], value)
        return value

    PyroModule.__setattr__, PyroModule.__getattr__ = give, get
    try:
        yield
    finally:
        PyroModule.__setattr__, PyroModule.__getattr__ = set_one, get_one


@contextmanager
def subsampling(choice: Choice) -> Iterator[None]:
    """Decide what subsampled plates draw, in this thread of control.

    Pyro checks sizes before any handler could change them, so the method that draws is replaced.
    """
    original = SubsampleMessenger._subsample
    token = _choice.set(choice)

    def _subsample(name: str, size: Any, subsample_size: Any, subsample: Any, *rest: Any) -> Any:
        chosen = _choice.get()
        is_open = subsample is None and size is not None and (subsample_size or size) < size
        if chosen is not None and is_open:
            subsample = chosen(name, size, subsample_size)
            subsample_size = None if subsample is None else subsample_size
        return original(name, size, subsample_size, subsample, *rest)

    SubsampleMessenger._subsample = staticmethod(_subsample)  # pyright: ignore
    try:
        yield
    finally:
        SubsampleMessenger._subsample = staticmethod(original)  # pyright: ignore
        _choice.reset(token)
