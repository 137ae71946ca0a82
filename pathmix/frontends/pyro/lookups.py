"""Routes what Python asks of a tensor (`bool`, `int`, `float`, an index, `.item()`) to an observer.

There are two ways to hear of it. A mode of PyTorch's is told of every function, which takes half as long as
the program itself. The methods that ask can be answered, and take nothing where nobody asks; but PyTorch
makes numbers by some of them as well, of what it is given for a size, and only a mode knows who asks.
"""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import one_hot
from torch.overrides import TorchFunctionMode

from pathmix.doors.pyro import active_plates
from pathmix.doors.torch import (
    answered_by,
    asks_for_validity,
    functorch_level,
    is_hidden_from_modes,
    original,
    plain_number,
    plain_of,
    tree_leaves,
    without_modes,
    without_torch_function,
)
from pathmix.frontends.pyro import indices
from pathmix.frontends.pyro.precisions import in_one_precision
from pathmix.frontends.pyro.texts import number_text
from pathmix.frontends.vectors import vector_decision
from pathmix.program.path import DecisionKind

Compared = Callable[[Iterable[Any], Any], None]  # what a comparison was given, and its result
Ranged = Callable[[Tensor], None]  # whether numbers are those that PyTorch takes


class Observer(Protocol):
    @property
    def is_listening(self) -> bool:
        """Whether its run goes on."""
        ...

    def decide(self, tensor: Tensor, kind: DecisionKind) -> Any:
        """The Python value to continue with."""
        ...

    def shown(self, tensor: Tensor) -> str:
        """The tensor as text."""
        ...

    def is_continuous(self, tensor: Tensor) -> bool:
        """Whether a tensor depends on continuous sites. Then it stays one, as far as that goes."""
        ...

    def overlook(self, tensor: Any) -> None:
        """Be told of a tensor that library code looks at; it gets the answer from PyTorch."""
        ...


class Unsure(BaseException):
    """Only a mode knows whether it is the program that asks. No program may catch it."""


class Lookups(TorchFunctionMode):
    """While active, the observer answers for every tensor that Python looks at."""

    def __init__(
        self,
        observer: Observer,
        *,
        computed_indices: bool = False,
        compared: Compared | None = None,
        ranged: Ranged | None = None,
    ) -> None:
        super().__init__()
        self.observer, self.compared, self.ranged = observer, compared, ranged
        self.pauses, self._is_answering = 0, False
        self.computed_indices = computed_indices  # stay tensors

    def by_methods(self) -> AbstractContextManager[None]:
        """Hear of what is asked by the methods that ask; `Unsure` where that is not enough."""
        return answered_by(self._asked)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        func = original(func)
        if func not in _NOTABLE:
            return in_one_precision(func, args, kwargs or {})
        return self._answered(func, args, kwargs or {})

    def _asked(self, func: Any, args: Any, kwargs: Any) -> Any:
        if func in _MAKING and args and type(args[0]) in _NUMBERS:
            return func(*args, **kwargs)
        if self._is_answering or (func in LOOKS and is_hidden_from_modes()):
            return func(*args, **kwargs)
        if func in _AMBIGUOUS and not self.pauses:
            raise Unsure
        self._is_answering = True
        try:
            return self._answered(func, args, kwargs)
        finally:
            self._is_answering = False

    def _answered(self, func: Any, args: Any, kwargs: Any) -> Any:
        if func is asks_for_validity:
            return True
        answer = _ANSWERS.get(func)
        if answer is not None:
            if not self.pauses or answer is _deepcopy:
                return answer(self.observer, *args, **kwargs)
            self.observer.overlook(args[0] if args else None)
        if self.compared is not None and func in _COMPARISONS:
            result = in_one_precision(func, args, kwargs)
            self.compared(args, result)
            return result
        if self.computed_indices and func in _INDEXED and _is_computed(func, args[1]):
            return _INDEXED[func](*args)
        if self.ranged is not None and func is one_hot:
            return _one_hot(self.ranged, *args, **kwargs)
        if func in _SEARCHES and isinstance(args[position := _SEARCHES[func]], Tensor):
            return _searched(func, args, kwargs, position)
        return in_one_precision(func, args, kwargs)

    def paused(self) -> "_Pause":
        """Let library code look at values unseen: samplers that reject, say."""
        return _Pause(self)


class _Pause:
    """A generator would take as long as some of the sites around which it is put."""

    def __init__(self, lookups: Lookups) -> None:
        self._lookups = lookups

    def __enter__(self) -> None:
        self._lookups.pauses += 1

    def __exit__(self, *error: Any) -> None:
        self._lookups.pauses -= 1


def _searched(func: Any, args: Any, kwargs: Any, position: int) -> Tensor:
    """PyTorch takes a tensor without axes for a number, and looks at it; one with an axis stays a tensor."""
    searched = args[position]
    row = [searched.reshape(-1) if i == position and searched.ndim == 0 else a for i, a in enumerate(args)]
    return func(*row, **kwargs).reshape(searched.shape) if searched.ndim == 0 else func(*args, **kwargs)


def _one_hot(ranged: Ranged, tensor: Tensor, num_classes: Any = -1) -> Tensor:
    """PyTorch looks at the numbers, if only to refuse some of them."""
    if not isinstance(num_classes, int) or num_classes < 0 or functorch_level() is not None:
        return one_hot(tensor, num_classes)
    hot = tensor.unsqueeze(-1) == torch.arange(num_classes, device=tensor.device)
    ranged(hot.any(-1))
    return hot.long()


def _is_computed(func: Any, index: Any) -> bool:
    return indices.has_computed(index) or (func is Tensor.__setitem__ and indices.is_switch(index))


_INDEXED: dict[Any, Callable[..., Any]] = {
    Tensor.__getitem__: indices.read,
    Tensor.__setitem__: indices.write,
}
_NUMBERS = {bool, int, float}
_COMPARISONS = {
    getattr(place, name)
    for names, places in (
        (("eq", "ne", "lt", "le", "gt", "ge"), (torch, Tensor)),
        (("logical_and", "logical_or", "logical_xor", "logical_not"), (torch, Tensor)),
        (("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"), (Tensor,)),
        (("__and__", "__or__", "__xor__", "__invert__"), (Tensor,)),
    )
    for place in places
    for name in names
}
# The argument that is searched for.
_SEARCHES = {torch.searchsorted: 1, torch.bucketize: 0}


def _is_integral(tensor: Tensor) -> bool:
    return not tensor.is_floating_point() and not tensor.is_complex()


def _scalar(tensor: Tensor, what: str) -> Tensor:
    if tensor.numel() != 1:
        raise vector_decision(what, tensor.shape, active_plates(), "a sequential plate, or in any loop")
    return tensor


def _bool(observer: Observer, tensor: Tensor) -> bool:
    return bool(observer.decide(_scalar(tensor, "a truth value"), "bool"))


def _int(observer: Observer, tensor: Tensor) -> int:
    return int(observer.decide(_scalar(tensor, "an int"), "int"))


def _float(observer: Observer, tensor: Tensor) -> float:
    kind = "int" if _is_integral(tensor) else "float"
    return float(observer.decide(_scalar(tensor, "a float"), kind))


def _complex(observer: Observer, tensor: Tensor) -> complex:
    return complex(_float(observer, tensor))


def _index(observer: Observer, tensor: Tensor) -> int:
    if not _is_integral(tensor):
        raise TypeError(f"a tensor of type {tensor.dtype} cannot be used as an index; use int(k)")
    return _int(observer, tensor)


def _item(observer: Observer, tensor: Tensor) -> Any:
    if tensor.dtype is torch.bool:
        return _bool(observer, tensor)
    if _is_integral(tensor):
        return _int(observer, tensor)
    if observer.is_continuous(_scalar(tensor, "a float")):
        return tensor.reshape(()).clone()
    return _float(observer, tensor)


def _array(observer: Observer, tensor: Tensor, dtype: Any = None, **_: Any) -> np.ndarray:
    return np.asarray(observer.decide(tensor, "array"), dtype=dtype or _numpy_dtype(tensor))


def _numpy(observer: Observer, tensor: Tensor, *, force: bool = False) -> np.ndarray:
    del force
    return _array(observer, tensor)


def _tolist(observer: Observer, tensor: Tensor) -> Any:
    return _item(observer, tensor) if tensor.ndim == 0 else _array(observer, tensor).tolist()


def _of_numbers(function: Callable[..., Any]) -> Callable[..., Any]:
    """What tells of memory is asked of a tensor that has numbers there."""

    def answer(observer: Observer, tensor: Tensor, *args: Any, **kwargs: Any) -> Any:
        numbers = _array(observer, tensor)
        with without_torch_function():
            return function(plain_of(torch.as_tensor(numbers)), *args, **kwargs)

    return answer


def _by_python(function: Callable[..., Any]) -> Callable[..., Tensor]:
    """A function of Python's that is called with the number of each element, and writes it."""

    def answer(observer: Observer, *arguments: Any) -> Tensor:
        numbers = [_array(observer, a) if isinstance(a, Tensor) else a for a in arguments]
        with without_torch_function():
            made = [plain_of(torch.tensor(a)) if isinstance(a, np.ndarray) else a for a in numbers]
            with without_modes():
                written = function(*made)
        return arguments[0].copy_(written)

    return answer


def _contains(observer: Observer, tensor: Tensor, element: Any) -> bool:
    return bool(observer.decide((element == tensor).any(), "bool"))


def _equal(observer: Observer, tensor: Tensor, other: Tensor) -> bool:
    return tensor.shape == other.shape and bool(observer.decide((tensor == other).all(), "bool"))


def _allclose(observer: Observer, tensor: Tensor, other: Tensor, *args: Any, **kwargs: Any) -> bool:
    return bool(observer.decide(torch.isclose(tensor, other, *args, **kwargs).all(), "bool"))


def _format(observer: Observer, tensor: Tensor, specification: str) -> str:
    if tensor.ndim == 0 and tensor.is_floating_point() and observer.is_continuous(tensor):
        return number_text(format(plain_number(tensor), specification), lambda: _look(observer, tensor))
    if tensor.ndim == 0:
        return format(_item(observer, tensor), specification)
    return format(observer.shown(tensor), specification)


def _look(observer: Observer, tensor: Tensor) -> None:
    if observer.is_listening:
        _float(observer, tensor)


def _repr(observer: Observer, tensor: Tensor, **_: Any) -> str:
    if tensor.ndim or tensor.is_complex():
        return observer.shown(tensor)
    if tensor.is_floating_point() and observer.is_continuous(tensor):
        return number_text(observer.shown(tensor), lambda: _look(observer, tensor))
    number = _float(observer, tensor) if tensor.is_floating_point() else _item(observer, tensor)
    with without_torch_function(), without_modes():
        return _represent(plain_of(_make(number, dtype=tensor.dtype)))


_make, _represent = torch.tensor, Tensor.__repr__


def _tensor(observer: Observer, data: Any, *, dtype: Any = None, **options: Any) -> Tensor:
    """`torch.tensor` would read the numbers out of the random values among its data."""
    del observer
    if type(data) in _NUMBERS or not any(isinstance(leaf, Tensor) for leaf in tree_leaves(data)):
        return _make(data, dtype=dtype, **options)
    made = data.clone() if isinstance(data, Tensor) else _stacked(data)
    return made if dtype is None else made.to(dtype)


def _of_list(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """What makes a tensor of another one may give that one; of a list, it would read the numbers."""

    def answer(observer: Observer, data: Any, *args: Any, **options: Any) -> Tensor:
        if isinstance(data, (list, tuple)) and any(isinstance(leaf, Tensor) for leaf in tree_leaves(data)):
            return _tensor(observer, data, dtype=options.get("dtype", args[0] if args else None))
        return function(data, *args, **options)

    return answer


def _new_tensor(observer: Observer, like: Tensor, data: Any, **options: Any) -> Tensor:
    return _tensor(observer, data, **{"dtype": like.dtype, **options})


def _new(observer: Observer, like: Tensor, *arguments: Any, **options: Any) -> Tensor:
    if len(arguments) == 1 and isinstance(arguments[0], (list, tuple)):
        return _tensor(observer, arguments[0], dtype=like.dtype, **options)
    return like.new(*arguments, **options)


def _stacked(data: Any) -> Tensor:
    if isinstance(data, (list, tuple)):
        return torch.stack([_stacked(item) for item in data])
    return data.reshape(()) if isinstance(data, Tensor) else torch.as_tensor(data)


def _full(observer: Observer, size: Any, fill_value: Any, *, dtype: Any = None, **options: Any) -> Tensor:
    del observer
    if not isinstance(fill_value, Tensor):
        return torch.full(size, fill_value, dtype=dtype, **options)
    return fill_value.to(dtype or fill_value.dtype).expand(size).clone()


def _deepcopy(observer: Observer, tensor: Tensor, memo: dict[int, Any]) -> Tensor:
    del observer
    return memo.setdefault(id(tensor), tensor.clone())


def _numpy_dtype(tensor: Tensor) -> Any:
    return torch.empty(0, dtype=tensor.dtype).numpy().dtype


_MEMORY = (Tensor.__dlpack__, Tensor.__reduce_ex__, Tensor.storage, Tensor.untyped_storage)
_CALLING = (Tensor.apply_, Tensor.map_, Tensor.map2_)
_ANSWERS: dict[Any, Callable[..., Any]] = {
    Tensor.__bool__: _bool,
    Tensor.is_nonzero: _bool,
    torch.is_nonzero: _bool,
    Tensor.__int__: _int,
    Tensor.__float__: _float,
    Tensor.__complex__: _complex,
    Tensor.__index__: _index,
    Tensor.item: _item,
    Tensor.tolist: _tolist,
    Tensor.numpy: _numpy,
    Tensor.__array__: _array,
    **{function: _of_numbers(function) for function in _MEMORY},
    **{function: _by_python(function) for function in _CALLING},
    Tensor.__contains__: _contains,
    Tensor.equal: _equal,
    torch.equal: _equal,
    Tensor.allclose: _allclose,
    torch.allclose: _allclose,
    Tensor.__format__: _format,
    Tensor.__repr__: _repr,
    Tensor.__deepcopy__: _deepcopy,
    torch.tensor: _tensor,
    torch.as_tensor: _of_list(torch.as_tensor),
    torch.asarray: _of_list(torch.asarray),
    Tensor.new_tensor: _new_tensor,
    Tensor.new: _new,
    torch.full: _full,
}
_MAKING = {torch.tensor, torch.as_tensor, torch.asarray}  # of numbers, which distributions do
LOOKS = _ANSWERS.keys() - _MAKING - {Tensor.__deepcopy__, Tensor.new_tensor, Tensor.new, torch.full}
# PyTorch's functions make numbers by these, of tensors where they take numbers.
_AMBIGUOUS = {Tensor.__index__, Tensor.__float__, Tensor.__complex__}
_NOTABLE = {asks_for_validity, one_hot, *_ANSWERS, *_COMPARISONS, *_INDEXED, *_SEARCHES}
