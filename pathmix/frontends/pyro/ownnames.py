"""Names of the user's own for what PyTorch has: `from torch import equal`, `same = torch.equal` in a closure.

Answering `torch.equal` changes nothing of what such a name stands for: only a mode hears of its calls.
"""

from collections.abc import Callable
from typing import Any

from pathmix.frontends.pyro.lookups import LOOKS
from pathmix.program.reachable import reachable

_LOOKS = frozenset(map(id, LOOKS))


def has_own_names(model: Callable[..., Any]) -> bool:
    """Whether the program can get at such a function."""
    return any(id(thing) in _LOOKS for thing in reachable(model))
