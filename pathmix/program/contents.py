"""What is in an object, as bytes that are the same in another process."""

import datetime
import hashlib
import inspect
import sys
from collections.abc import Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import PurePath
from types import BuiltinFunctionType, MethodType, ModuleType
from typing import Any
from uuid import UUID

import numpy as np

from pathmix.program.taken_along import is_installed, source_of, taken_along

# What their texts tell whole.
_TOLD_BY_TEXT = (
    type(None), type(...), range, slice, Decimal, Fraction, UUID, PurePath, Enum,
    datetime.date, datetime.time, datetime.timedelta, datetime.tzinfo, np.dtype,
)  # fmt: skip


class UntoldError(Exception):
    """Of some object, only the type is known; its name is the argument."""


def plain_content(value: Any) -> bytes | None:
    """Of numbers, texts and arrays; None of other things."""
    if isinstance(value, (bool, int, float, complex, str, bytes)):
        return repr(value).encode()
    try:
        array = np.asarray(value)
    except Exception:  # of whatever kind it may be
        return None
    if array.dtype.hasobject:
        return None
    return f"{array.dtype} {array.shape}".encode() + np.ascontiguousarray(array).tobytes()


def content(value: Any, within: tuple[Any, ...] = ()) -> bytes:
    """Of anything, or `UntoldError`. `within` are the objects that this one is a part of."""
    if any(value is one for one in within):
        return b"itself"
    found = _pandas_content(value, within)
    if found is None and not isinstance(value, Enum):
        found = plain_content(value)
    return _digest(type(value), [found]) if found is not None else _digest(type(value), _parts(value, within))


def _parts(value: Any, within: tuple[Any, ...]) -> list[bytes]:
    """The contents of what an object is made of."""
    torch = sys.modules.get("torch")

    def of(*parts: Any) -> list[bytes]:
        return [content(part, (*within, value)) for part in parts]

    if isinstance(value, _TOLD_BY_TEXT):
        return [repr(value).encode()]
    if isinstance(value, np.ndarray):
        return of(value.shape, *value.ravel())
    if torch is not None and isinstance(value, torch.Tensor):
        return [_tensor_content(value)]
    if isinstance(value, (type, BuiltinFunctionType, np.ufunc)):
        return [value.__name__.encode()]
    if isinstance(value, ModuleType):
        return [value.__name__.encode()]
    if is_dataclass(value):
        return of(*(getattr(value, one.name) for one in fields(value) if one.compare))
    if isinstance(value, Mapping):
        return sorted(_digest(tuple, of(key, item)) for key, item in value.items())
    if isinstance(value, Set):
        return sorted(of(*value))
    if isinstance(value, Sequence):
        return of(*value)
    if is_installed(value):
        return [value.__qualname__.encode()]
    if callable(value) and (text := source_of(value)) is not None:
        return [inspect.cleandoc(text).encode(), *of(*(part for _, part in taken_along(value)))]
    return of(*_state(value))


def _state(value: Any) -> Sequence[Any]:
    """What an object keeps, as pickles tell it, but for what it can work out again."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.nn.Module):
        return ()  # its parameters are the program's
    if isinstance(value, MethodType):
        return (value.__self__, value.__func__)
    try:
        rebuilt = value.__reduce_ex__(2)
    except Exception as error:  # of whatever kind it may be
        raise UntoldError(type(value).__qualname__) from error
    if isinstance(rebuilt, str):
        return (rebuilt,)
    _, arguments, state, *items = [*rebuilt, None][: max(len(rebuilt), 3)]
    if isinstance(state, dict):
        state = {name: part for name, part in state.items() if not _is_worked_out(value, name)}
    return arguments, state, *(list(item or ()) for item in items)


def _is_worked_out(value: Any, name: str) -> bool:
    """Whether an attribute is what a `cached_property` or its like has written."""
    found = inspect.getattr_static(type(value), name, None)
    return hasattr(type(found), "__get__") and not hasattr(type(found), "__set__") and not callable(found)


def _tensor_content(tensor: Any) -> bytes:
    tensor = tensor.detach().cpu()
    dense = tensor.to_dense() if tensor.is_sparse else tensor
    # NumPy has no bfloat16; every such number is one of float32, too.
    number = dense.float() if str(dense.dtype) == "torch.bfloat16" else dense
    return f"{tensor.dtype} {tuple(tensor.shape)}".encode() + np.ascontiguousarray(number.numpy()).tobytes()


def _pandas_content(value: Any, within: tuple[Any, ...]) -> bytes | None:
    """Of a table, column by column, and its index."""
    pandas = sys.modules.get("pandas")
    if pandas is None or not isinstance(value, (pandas.DataFrame, pandas.Series, pandas.Index)):
        return None

    def of(values: Any) -> bytes:
        return content(np.asarray(values), (*within, value))

    if isinstance(value, pandas.Index):
        return _digest(tuple, [content([*value.names], within), of(value)])
    index = content(value.index, within)
    if isinstance(value, pandas.Series):
        return _digest(tuple, [str(value.dtype).encode(), content(value.name, within), index, of(value)])
    columns = [content(value.iloc[:, number], within) for number in range(value.shape[1])]
    return _digest(tuple, [index, content(value.columns, within), *columns])


def _digest(kind: type, parts: Sequence[bytes]) -> bytes:
    digest = hashlib.sha256(kind.__qualname__.encode())  # a script and who imports it disagree on the module
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.digest()
