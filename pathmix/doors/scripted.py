"""Functions compiled by `torch.jit.script`: where one looks up by a traced index, PyTorch ends the process.

The function that was compiled does the same in Python. Of a module's methods none is kept.
"""

from typing import Any

import torch

from pathmix.errors import ProgramError
from pathmix.program.source import caller

_torch: Any = torch
_function, _method = _torch._C.ScriptFunction, _torch._C.ScriptMethod
_BY_INDEX = "aten::index(", "aten::index_put_("
_call, _call_method = _function.__call__, _method.__call__


def _called(compiled: Any, *args: Any, **kwargs: Any) -> Any:
    if not _ends_the_process(compiled, args, kwargs):
        return _call(compiled, *args, **kwargs)
    if (function := getattr(compiled, "_torchdynamo_inline", None)) is None:
        raise _refusal(compiled)
    return function(*args, **kwargs)


def _method_called(compiled: Any, *args: Any, **kwargs: Any) -> Any:
    if _ends_the_process(compiled, args, kwargs):
        raise _refusal(compiled)
    return _call_method(compiled, *args, **kwargs)


def _ends_the_process(compiled: Any, args: Any, kwargs: Any) -> bool:
    given = (*args, *kwargs.values())
    is_traced = any(isinstance(a, torch.Tensor) and _torch._is_functional_tensor(a) for a in given)
    return is_traced and any(operation in str(compiled.inlined_graph) for operation in _BY_INDEX)


def _refusal(compiled: Any) -> ProgramError:
    return ProgramError(
        f"The compiled {compiled.name!r} at {caller()} has look-ups by a tensor (`x[index]`), which PyTorch "
        "cannot trace there. Use what it was compiled from, without torch.jit."
    )


SCRIPTED: dict[tuple[Any, str], Any] = {
    (_function, "__call__"): _called,
    (_method, "__call__"): _method_called,
}
