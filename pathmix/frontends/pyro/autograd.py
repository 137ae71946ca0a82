"""Functions with a derivative of their own (`torch.autograd.Function`), which a trace cannot follow.

A trace has each as one operation, with both of its passes. The one that Pyro's densities use for its
derivative is written out.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor

from pathmix.doors.pyro import SafeLog
from pathmix.doors.torch import (
    Context,
    forward_pass,
    functional,
    functions_applied_by,
    is_functional,
    outside_of_trace,
    plain_of,
)

_SIMPLE = (bool, int, float, complex, str, type(None))


class OwnDerivative:
    """An operation on tensors: such a function with its other arguments, and tensors to try it with."""

    def __init__(self, function: Any, apply: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self.function, self._apply = function, apply
        self.examples = [plain_of(a) for a in arguments if isinstance(a, Tensor)]
        self._arguments = tuple(None if isinstance(a, Tensor) else a for a in arguments)
        self._places = [place for place, a in enumerate(arguments) if isinstance(a, Tensor)]

    def __repr__(self) -> str:
        """The same in every trace."""
        others = [a if isinstance(a, _SIMPLE) else type(a) for a in self._arguments]
        return f"{self.function.__module__}.{self.function.__qualname__}{others}"

    def __call__(self, *tensors: Tensor) -> Any:
        return self._apply(*self._filled(tensors))

    def forward(self, *tensors: Tensor) -> list[Tensor]:
        return _listed(forward_pass(self.function, Context(), *self._filled(tensors)))

    def backward(self, *values: Tensor) -> list[Tensor]:
        """Gradients by tensors of floats, given all tensors, and weights of the results that are floats."""
        count = len(self._places)
        tensors, weights = values[:count], iter(values[count:])
        arguments = self._filled(tensors)
        context = Context(tuple(isinstance(a, Tensor) and a.is_floating_point() for a in arguments))
        results = _listed(forward_pass(self.function, context, *arguments))
        given = [next(weights) if result.is_floating_point() else None for result in results]
        found = _listed(self.function.backward(context, *given))
        by_tensor = zip(tensors, (found[place] for place in self._places), strict=True)
        return [
            torch.zeros_like(tensor) if gradient is None else gradient.expand_as(tensor)
            for tensor, gradient in by_tensor
            if tensor.is_floating_point()
        ]

    def _filled(self, tensors: tuple[Tensor, ...]) -> list[Any]:
        arguments = list(self._arguments)
        for place, tensor in zip(self._places, tensors, strict=True):
            arguments[place] = tensor
        return arguments


def traced_functions(write_down: Callable[[Any, list[Tensor]], Any]) -> AbstractContextManager[None]:
    """Inside, such functions are written down, as operations on tensors."""

    def handler(
        function: Any, apply: Callable[..., Any], arguments: tuple[Any, ...], options: dict[str, Any]
    ) -> Any:
        if function is SafeLog:
            return _safe_log(*arguments)
        tensors = [a for a in arguments if isinstance(a, Tensor)]
        # PyTorch differentiates inside the program: by its own means.
        if any(t.requires_grad for t in tensors) or options or not all(map(_is_plain, tensors)):
            return forward_pass(function, Context(), *arguments, **options)
        own, plain = OwnDerivative(function, apply, arguments), [plain_of(t) for t in tensors]
        with outside_of_trace():
            results = write_down(own, plain)
        if isinstance(results, Tensor):
            return functional(results)
        return tuple(functional(result) for result in results)

    return functions_applied_by(handler)


def _is_plain(tensor: Tensor) -> bool:
    return is_functional(tensor) or tensor.layout is torch.strided


def _listed(results: Any) -> list[Any]:
    return list(results) if isinstance(results, (tuple, list)) else [results]


def _safe_log(x: Tensor) -> Tensor:
    """Below the smallest number that can be told from zero, the derivative stays as it is there."""
    least = torch.finfo(x.dtype).eps
    tiny = x < least
    flat = x.detach().log() + (x - x.detach()) / least
    return torch.where(tiny, flat, torch.where(tiny, torch.ones_like(x), x).log())
