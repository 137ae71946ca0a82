"""Pyro beyond its public interface."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any

import torch
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
