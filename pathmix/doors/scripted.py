"""Functions compiled by `torch.jit.script`: where one looks up by a traced index, PyTorch ends the process.

The function that was compiled does the same in Python. Of a module's methods none is kept.
"""

from collections.abc import Callable
from typing import Any

import torch

_torch: Any = torch
_function, _method = _torch._C.ScriptFunction, _torch._C.ScriptMethod
_BY_INDEX = "aten::index(", "aten::index_put_("
_call, _call_method = _function.__call__, _method.__call__


def scripted(refusal: Callable[[str], Exception]) -> dict[tuple[Any, str], Any]:
    """What takes the place of PyTorch's calls. A method, by its name, is refused."""

    def called(compiled: Any, *args: Any, **kwargs: Any) -> Any:
        if not _ends_the_process(compiled, args, kwargs):
            return _call(compiled, *args, **kwargs)
        if (function := getattr(compiled, "_torchdynamo_inline", None)) is None:
            raise refusal(compiled.name)
        return function(*args, **kwargs)

    def method_called(compiled: Any, *args: Any, **kwargs: Any) -> Any:
        if _ends_the_process(compiled, args, kwargs):
            raise refusal(compiled.name)
        return _call_method(compiled, *args, **kwargs)

    return {(_function, "__call__"): called, (_method, "__call__"): method_called}


def _ends_the_process(compiled: Any, args: Any, kwargs: Any) -> bool:
    given = (*args, *kwargs.values())
    is_traced = any(isinstance(a, torch.Tensor) and _torch._is_functional_tensor(a) for a in given)
    return is_traced and any(operation in str(compiled.inlined_graph) for operation in _BY_INDEX)
