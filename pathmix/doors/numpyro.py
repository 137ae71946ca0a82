"""NumPyro beyond its public interface."""

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import FrameType
from typing import Any

import jax
import numpyro
from numpyro import primitives
from numpyro.contrib.control_flow.scan import scan_wrapper
from numpyro.distributions import Distribution
from numpyro.ops.pytree import PytreeTrace
from numpyro.primitives import Messenger

__all__ = [
    "MESSAGE",
    "Messenger",
    "active_plates",
    "asked_for_parameters",
    "gathered",
    "handlers",
    "in_control_flow",
    "is_scan",
    "unvalidated",
    "watch",
]

# The parts of a `sample` message that are read or written; handlers are how NumPyro is made to be extended,
# but what a message has is written down nowhere.
MESSAGE = (
    "type", "name", "fn", "args", "kwargs", "value", "is_observed", "infer", "cond_indep_stack", "scale",
    "intermediates",
)  # fmt: skip


class _Watch(Messenger):
    def __init__(self, on_statement: Callable[[str], None]) -> None:
        super().__init__()
        self.on_statement = on_statement

    def process_message(self, msg: Any) -> None:
        self.on_statement(str(msg["name"]))


def watch(on_statement: Callable[[str], None]) -> AbstractContextManager[Any]:
    """Inside, `on_statement` is told the name of every statement."""
    return _Watch(on_statement)


def handlers() -> list[Any]:
    """The handlers around the present call: under the user's own, a run would be part of their program."""
    return list(primitives._PYRO_STACK)


def active_plates() -> list[str]:
    """Names of the plates around the present statement: an error tells of them."""
    return [handler.name for handler in handlers() if isinstance(handler, primitives.plate)]


def asked_for_parameters() -> bool:
    """Whether `numpyro.param` asks for a key, or a module that makes parameters of what it draws."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        module = str(frame.f_globals.get("__name__"))
        if module == "numpyro.contrib.module" or frame.f_code is primitives.param.__code__:
            return True
        if not module.startswith(("numpyro.", "pathmix.")):
            return False
        frame = frame.f_back
    return False


def in_control_flow(msg: Any) -> bool:
    """Whether a site was gathered from inside NumPyro's `scan` or `cond`, which mark it so."""
    return bool(msg.get("_control_flow_done"))


def is_scan(msg: Any) -> bool:
    """Whether a control-flow message is a scan, which adds an axis to its sites."""
    return msg["fn"] is scan_wrapper


def gathered(result: Any) -> list[Any]:
    """The messages from inside `scan` or `cond`, which their functions give among their results."""
    leaves = jax.tree.leaves(result, is_leaf=lambda part: isinstance(part, PytreeTrace))
    return [msg for leaf in leaves if isinstance(leaf, PytreeTrace) for msg in leaf.trace.values()]


@contextmanager
def unvalidated() -> Iterator[None]:
    """Without validation. The library's own context manager alone would leave a default of its own behind."""
    before = Distribution._validate_args
    try:
        with numpyro.validation_enabled(False):
            yield
    finally:
        Distribution.set_default_validate_args(before)
