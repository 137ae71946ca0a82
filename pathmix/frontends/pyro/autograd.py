"""Functions with a derivative of their own (`torch.autograd.Function`), which a trace cannot follow.

They are traced through what their forward pass does; JAX differentiates that. The one that Pyro's
densities use for its derivative is written out.
"""

from contextlib import AbstractContextManager

import torch

from pathmix.doors.pyro import SafeLog
from pathmix.doors.torch import through_forward_passes


def traced_functions() -> AbstractContextManager[None]:
    """Inside, applying such a function runs its forward pass."""
    return through_forward_passes({SafeLog: _safe_log})


def _safe_log(x: torch.Tensor) -> torch.Tensor:
    """Below the smallest number that can be told from zero, the derivative stays as it is there."""
    least = torch.finfo(x.dtype).eps
    tiny = x < least
    flat = x.detach().log() + (x - x.detach()) / least
    return torch.where(tiny, flat, torch.where(tiny, torch.ones_like(x), x).log())
