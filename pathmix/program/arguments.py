"""What users call their models with: lists of numbers and pandas objects are taken as arrays.

The rule, for the arguments and for what they contain (tuples, lists, dicts):

- A list of numbers, nested or not, becomes an array. Other lists (of texts, of None, empty) stay; a list of
  lists of different lengths becomes a list of arrays.
- A tuple stays a tuple: it is a shape or a pair of settings more often than data.
- A pandas Series of numbers becomes an array; one of anything else stays.
- A pandas DataFrame stays what it is if the program runs with it so. If it does not, its columns and other
  parts become arrays as the program takes them out (`df["x"]`, `df.x`); and if it does not run with that
  either, the whole of it becomes an array, with a row for each row.

An observed value (`obs=...`) that is still a list or of pandas, a column for example, becomes an array too.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from numbers import Number
from typing import Any, Literal

import jax
import numpy as np

MakeArray = Callable[[np.ndarray], Any]
Frames = Literal["as given", "columns", "arrays"]  # what becomes of DataFrames


@dataclass(frozen=True, eq=False)
class Columns:
    """A DataFrame whose parts are arrays once they are taken out."""

    _frame: Any
    _make: MakeArray = field(compare=False)

    def __getitem__(self, key: Any) -> Any:
        return self._taken_out(self._frame[key])

    def __getattr__(self, name: str) -> Any:
        return self._taken_out(getattr(self._frame, name))

    def __len__(self) -> int:
        return len(self._frame)

    def _taken_out(self, part: Any) -> Any:
        array = as_array(part)
        return part if array is None else self._make(array)


def taken(arguments: Any, make: MakeArray, frames: Frames) -> Any:
    """The arguments with arrays made of what is to be taken as one."""

    def take(leaf: Any) -> Any:
        array = as_array(leaf)
        if _is_frame(leaf) and frames == "columns":
            return Columns(leaf, make)
        if array is None or (_is_frame(leaf) and frames == "as given"):
            return leaf
        return make(array)

    return jax.tree.map(take, arguments, is_leaf=_is_list_of_numbers)


def take_data(msg: Any, make: MakeArray) -> None:
    """Make an array of the observed value of a site, if it is a list or of pandas or NumPy."""
    if not msg["is_observed"]:
        return
    value = msg["value"]
    array = value if isinstance(value, np.ndarray) else as_array(value)
    if array is not None and array.dtype != object:
        msg["value"] = make(array)


def has_frames(arguments: Any) -> bool:
    """Whether there is a DataFrame among the arguments."""
    return any(map(_is_frame, jax.tree.leaves(arguments)))


def as_array(value: Any) -> np.ndarray | None:
    """The array that a list or a pandas object stands for; None if it is neither, or not of numbers."""
    pandas = sys.modules.get("pandas")
    if isinstance(value, list):
        return _of_list(value)
    if pandas is None or not isinstance(value, (pandas.Series, pandas.DataFrame)):
        return None
    dtypes = value.dtypes if isinstance(value, pandas.DataFrame) else [value.dtype]
    numeric, boolean = pandas.api.types.is_numeric_dtype, pandas.api.types.is_bool_dtype
    if not all(numeric(dtype) or boolean(dtype) for dtype in dtypes) or not value.size:
        return None
    array = value.to_numpy(copy=True)  # what pandas gives may be read-only
    return array if array.dtype != object else value.to_numpy(dtype=float, na_value=np.nan)


def _of_list(value: list[Any]) -> np.ndarray | None:
    leaves, shape = value, [len(value)]
    while leaves and all(isinstance(part, (list, tuple)) for part in leaves):
        if len({len(part) for part in leaves}) != 1:
            return None
        shape.append(len(leaves[0]))
        leaves = [item for part in leaves for item in part]
    if not leaves or not all(isinstance(item, (Number, np.number, np.bool_)) for item in leaves):
        return None
    return np.asarray(leaves).reshape(shape)


def _is_list_of_numbers(value: Any) -> bool:
    return isinstance(value, list) and _of_list(value) is not None


def _is_frame(value: Any) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(value, pandas.DataFrame)
