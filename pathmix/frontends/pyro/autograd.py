"""Functions with a derivative of their own (`torch.autograd.Function`), which `functionalize` cannot follow.

They are traced through what their forward pass does; JAX differentiates that. The one that Pyro's
densities use for its derivative is written out.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from pyro.ops.special import _SafeLog
from torch._C._functorch import maybe_current_level
from torch.autograd.function import Function, FunctionCtx

_apply: Any = Function.__dict__["apply"]


@contextmanager
def traced_functions() -> Iterator[None]:
    """Inside `functionalize`, applying such a function runs its forward pass. Other code is unharmed."""
    functions: Any = Function
    functions.apply = classmethod(_forward)
    try:
        yield
    finally:
        functions.apply = _apply


def _forward(function: Any, *arguments: Any, **options: Any) -> Any:
    if maybe_current_level() is None:
        return _apply.__get__(None, function)(*arguments, **options)
    if function is _SafeLog:
        return _safe_log(*arguments)
    if function.setup_context is not Function.setup_context:
        return function.forward(*arguments, **options)
    return function.forward(FunctionCtx(), *arguments, **options)


def _safe_log(x: torch.Tensor) -> torch.Tensor:
    """Below the smallest number that can be told from zero, the derivative stays as it is there."""
    least = torch.finfo(x.dtype).eps
    tiny = x < least
    flat = x.detach().log() + (x - x.detach()) / least
    return torch.where(tiny, flat, torch.where(tiny, torch.ones_like(x), x).log())
