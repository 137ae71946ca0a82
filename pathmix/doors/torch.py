"""PyTorch beyond its public interface."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch._C._functorch import _wrap_functional_tensor, is_functorch_wrapped_tensor, maybe_current_level
from torch._guards import TracingContext, tracing
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd.function import Function, FunctionCtx
from torch.fx.experimental.proxy_tensor import (
    disable_proxy_modes_tracing,
    get_proxy_mode,
    get_proxy_slot,
    make_fx,
)
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

__all__ = [
    "FakeTensorMode",
    "TorchDispatchMode",
    "TracingContext",
    "asks_for_validity",
    "core_decompositions",
    "functional",
    "functorch_level",
    "is_functional",
    "is_traced",
    "looked_at",
    "make_fx",
    "schema_of",
    "through_forward_passes",
    "tracing",
    "tree_leaves",
    "tree_map_only",
    "untraced",
    "without_torch_function",
]

# Only the validation of distributions asks this; those made outside our scope may still do it.
asks_for_validity = getattr(torch, "_is_all_true")


def functorch_level() -> int | None:
    """How deep in `functionalize`, vmap or grad the present call is; None outside: nothing public tells."""
    return maybe_current_level()


def is_traced() -> bool:
    """Whether the present call is made inside vmap, grad, make_fx, jit.trace or with fake tensors."""
    kinds = torch._C._TorchDispatchModeKey
    modes = (torch._C._get_dispatch_mode(kind) for kind in (kinds.PROXY, kinds.FAKE))
    return (
        functorch_level() is not None
        or getattr(torch.jit, "is_tracing")()
        or any(mode is not None for mode in modes)
    )


def is_functional(tensor: torch.Tensor) -> bool:
    """Whether `functionalize` follows writes into a tensor."""
    return is_functorch_wrapped_tensor(tensor)


def functional(tensor: torch.Tensor, level: Any) -> torch.Tensor:
    """A tensor that `functionalize` follows writes into; by itself, it knows of its inputs alone."""
    return _wrap_functional_tensor(tensor, level)


def untraced() -> AbstractContextManager[Any]:
    """Inside, operations are not written down by `make_fx`."""
    return disable_proxy_modes_tracing()


def looked_at(tensors: Sequence[Any]) -> list[Any]:
    """The nodes of tensors that `make_fx` knows: library code that looks at them is told of."""
    mode: Any = get_proxy_mode()
    slots: list[Any] = [get_proxy_slot(tensor, mode.tracer, default=None) for tensor in tensors]
    return [slot.proxy.node for slot in slots if slot is not None]


def without_torch_function() -> AbstractContextManager[Any]:
    """Inside, `__torch_function__` is not called a second time."""
    return torch._C.DisableTorchFunction()


def schema_of(operation: Any) -> Any:
    """The arguments that an ATen operation takes, and which of them it writes into; None if unknown."""
    return getattr(operation, "_schema", None)


def core_decompositions(also: Sequence[Any]) -> dict[Any, Any]:
    """PyTorch's own ways to write operations in terms of simpler ones."""
    from torch._decomp import core_aten_decompositions, get_decompositions

    return {**dict(core_aten_decompositions().items()), **get_decompositions(also)}


_apply: Any = Function.__dict__["apply"]
Rules = dict[Any, Callable[..., Any]]
_rules: ContextVar[Rules | None] = ContextVar("pathmix_rules", default=None)


@contextmanager
def through_forward_passes(rules: Rules) -> Iterator[None]:
    """Inside `functionalize`, applying a function with a derivative of its own runs its forward pass.

    `functionalize` cannot follow `torch.autograd.Function`. `rules` say what to run instead for some. Other
    threads, and code outside `functionalize`, keep PyTorch's method.
    """
    functions: Any = Function
    before, token = functions.__dict__["apply"], _rules.set(rules)
    functions.apply = classmethod(_forward)
    try:
        yield
    finally:
        functions.apply = before
        _rules.reset(token)


def _forward(function: Any, *arguments: Any, **options: Any) -> Any:
    rules = _rules.get()
    if rules is None or maybe_current_level() is None:
        return _apply.__get__(None, function)(*arguments, **options)
    if function in rules:
        return rules[function](*arguments)
    if function.setup_context is not Function.setup_context:
        return function.forward(*arguments, **options)
    return function.forward(FunctionCtx(), *arguments, **options)
