"""Names of the user's own for what PyTorch has: `from torch import equal`.

Answering `torch.equal` changes nothing of what such a name stands for: only a mode hears of its calls.
"""

import sys
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

from pathmix.frontends.pyro.floats import function_of
from pathmix.frontends.pyro.lookups import LOOKS

_LOOKS = frozenset(map(id, LOOKS))
_LIBRARIES = ("functorch", "jax", "numpyro", "pathmix", "pyro", "torch")


def has_own_names(model: Callable[..., Any]) -> bool:
    """Whether a module that is loaded has one, or that of the model, which may be at its beginning."""
    function = function_of(model)
    return (function is not None and _has(function.__globals__.values())) or _some_module_has(
        len(sys.modules)
    )


@lru_cache(1)
def _some_module_has(loaded: int) -> bool:
    """Asked once for each number of loaded modules."""
    del loaded
    modules = list(sys.modules.items())
    own = [module for name, module in modules if name.partition(".")[0] not in _LIBRARIES]
    return any(_has(list(getattr(module, "__dict__", {}).values())) for module in own)


def _has(values: Iterable[Any]) -> bool:
    return not _LOOKS.isdisjoint(map(id, values))
