"""Where parameters start: Pyro keeps the first value that a name has, whatever later runs would give it."""

from collections.abc import Callable
from typing import Any

import torch

from pathmix.doors.torch import plain_of, without_modes, without_torch_function
from pathmix.errors import ParameterError
from pathmix.frontends.pyro.tape import is_drawn, is_open
from pathmix.program.reachable import within
from pathmix.program.source import caller


def check_start(name: str, start: Any, kept: torch.Tensor | None) -> None:
    """Refuse a start that depends on sites, or is another one than that which is kept, if it matters.

    The weights that a network draws when it is made are as they are.
    """
    if callable(start) and not isinstance(start, torch.Tensor):
        start = _made(start)
    if not isinstance(start, torch.Tensor) or is_drawn(start):
        return
    if is_open(start):
        raise ParameterError(
            f"The initial value of the parameter {name!r} at {caller()} depends on a random value. Pyro "
            "keeps that of the first run, so other runs would not see theirs. Use the value itself (in a "
            f"module: `del module.{name}` first), or give the module a PyroSample."
        )
    if kept is not None and not _are_alike(start, kept):
        raise ParameterError(
            f"The parameter {name!r} at {caller()} starts at another value on this path than on the one "
            "that was run first, whose value Pyro keeps. Give it another name on each path, or use the value "
            "itself."
        )


def _made(start: Callable[[], Any]) -> Any:
    """What a function gives, if it has random values at hand: others are left to the first run."""
    if not any(isinstance(inner, torch.Tensor) and is_open(inner) for inner in within(start)):
        return None
    with torch.random.fork_rng(devices=[]):
        return start()


def _are_alike(start: torch.Tensor, value: torch.Tensor) -> bool:
    with without_torch_function(), without_modes():
        one, other = plain_of(start).detach(), plain_of(value).detach()
        if one.shape != other.shape or one.data_ptr() == other.data_ptr():
            return one.shape == other.shape
        # Parameters with a constraint go through a transform and back.
        return torch.allclose(one.double(), other.double(), rtol=1e-5, atol=1e-6, equal_nan=True)
