"""PyTorch beyond its public interface."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from types import FrameType
from typing import Any

import torch
from torch._C import _len_torch_dispatch_stack
from torch._C._functorch import is_functorch_wrapped_tensor, maybe_current_level
from torch.autograd.function import Function, FunctionCtx
from torch.nn.modules.module import (
    register_module_buffer_registration_hook,
    register_module_parameter_registration_hook,
)
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_leaves, tree_map_only

from pathmix.doors.legacy import LEGACY
from pathmix.doors.scripted import scripted

__all__ = [
    "MARK",
    "Apply",
    "Context",
    "DispatchMode",
    "answerable",
    "answered_by",
    "asks_for_validity",
    "core_decompositions",
    "dispatch_depth",
    "forward_pass",
    "functional",
    "functionalized",
    "functions_applied_by",
    "functorch_level",
    "is_compiled",
    "is_composite",
    "is_functional",
    "is_hidden_from_modes",
    "is_traced",
    "original",
    "outside_of_trace",
    "plain_number",
    "plain_of",
    "registered_again",
    "release",
    "reserve",
    "schema_of",
    "storage_id",
    "tree_leaves",
    "without_modes",
    "without_torch_function",
]

_torch: Any = torch
MARK = "_pathmix_node"  # of a tensor that is on a tape
_ROOTS = tuple(os.path.dirname(str(file)) + os.sep for file in (torch.__file__, os.path.dirname(__file__)))

# Only the validation of distributions asks this; those made outside our scope may still do it.
asks_for_validity = getattr(torch, "_is_all_true")


class DispatchMode(TorchDispatchMode):
    """PyTorch wraps the methods of modes to keep its compiler out, which takes longer than what they do, and
    seconds the first time."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False


def dispatch_depth() -> int:
    """How many such modes are told of operations here: the last to come must be the first to go."""
    return _len_torch_dispatch_stack()


def is_compiled() -> bool:
    """Whether a function that `torch.compile` gave makes the present call.

    When it returns, it puts back which modes are told of operations, whatever was changed meanwhile.
    """
    frame: FrameType | None = sys._getframe(1) if "torch._dynamo.eval_frame" in sys.modules else None
    while frame is not None:
        if frame.f_code.co_name == "compile_wrapper" and frame.f_code.co_filename.startswith(_ROOTS):
            return True
        frame = frame.f_back
    return False


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


def functionalized(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function of tensors gives, with values in place of all writes; `TorchDispatchMode`s see these.

    `torch.func.functionalize` leaves the writes inside PyTorch's composite operations.
    """
    wrapped = [functional(a) if isinstance(a, torch.Tensor) else a for a in arguments]
    with _writes_followed():
        results = function(*wrapped)
    return tree_map_only(torch.Tensor, _plain, results)


@contextmanager
def registered_again() -> Iterator[None]:
    """Afterwards, modules have the parameters and buffers that they had: those of a trace are not for use."""
    had: list[tuple[dict[str, Any], str, torch.Tensor]] = []

    def remember(among: str) -> Callable[[torch.nn.Module, str, Any], None]:
        def hook(module: torch.nn.Module, name: str, _: Any) -> None:
            if (present := (tensors := getattr(module, among)).get(name)) is not None:
                had.append((tensors, name, present))

        return hook

    hooks = [
        register_module_parameter_registration_hook(remember("_parameters")),
        register_module_buffer_registration_hook(remember("_buffers")),
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
        for tensors, name, present in reversed(had):
            tensors[name] = present


@contextmanager
def _writes_followed() -> Iterator[None]:
    key = torch._C.DispatchKey.Functionalize
    included = torch._C._dispatch_tls_local_include_set()
    if included.has(key):  # by another call, inside of whose operations nothing is followed
        excluded = torch._C._dispatch_tls_local_exclude_set().remove(key)
        with torch._C._ForceDispatchKeyGuard(included, excluded):
            yield
        return
    _torch._enable_functionalization(reapply_views=True)
    try:
        yield
    finally:
        _torch._disable_functionalization()


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    if not _torch._is_functional_tensor(tensor):
        return tensor
    _torch._sync(tensor)
    return _torch._from_functional_tensor(tensor)


def is_functional(tensor: torch.Tensor) -> bool:
    """Whether writes into a tensor are followed."""
    return _torch._is_functional_tensor(tensor) or is_functorch_wrapped_tensor(tensor)


def functional(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor into which writes are followed; otherwise they are in the arguments and new tensors alone."""
    return _torch._to_functional_tensor(tensor)


def without_torch_function() -> AbstractContextManager[Any]:
    """Inside, `__torch_function__` is not called a second time."""
    return torch._C.DisableTorchFunction()


def without_modes() -> AbstractContextManager[Any]:
    """Inside, no mode is told of operations."""
    return torch._C._DisableTorchDispatch()


# Methods by which Python asks a tensor for something, or compares it, and functions that do the same. Modes
# hear of these too, but of all others as well, which takes half of the time that a program takes.
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor", "logical_not")
_METHODS = (
    "__array__", "__bool__", "__complex__", "__contains__", "__deepcopy__", "__float__", "__format__",
    "__index__", "__int__", "__repr__", "allclose", "equal", "is_nonzero", "item", "numpy", "tolist",
    "__dlpack__", "__reduce_ex__", "apply_", "map_", "map2_", "new", "new_tensor", "storage",
    "untyped_storage", "__and__", "__eq__", "__ge__", "__gt__", "__invert__", "__le__", "__lt__", "__ne__",
    "__or__", "__xor__", *_COMPARISONS,
)  # fmt: skip
_FUNCTIONS = (
    "_is_all_true", "allclose", "as_tensor", "asarray", "bucketize", "equal", "full", "is_nonzero",
    "searchsorted", "tensor", *_COMPARISONS,
)  # fmt: skip
Answer = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]
_answer: ContextVar[Answer | None] = ContextVar("pathmix_answer", default=None)
_MISSING = object()


def _asking(function: Any) -> Any:
    def asking(*args: Any, **kwargs: Any) -> Any:
        answer = _answer.get()
        return function(*args, **kwargs) if answer is None else answer(function, args, kwargs)

    return asking


def _following(function: Any, place: int) -> Any:
    """For `torch.nn.Parameter(x)` and other types, made of an argument: no mode hears of it."""

    def made(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        source = args[place] if place < len(args) else kwargs.get("data")
        if isinstance(source, torch.Tensor) and (mark := getattr(plain_of(source), MARK, None)) is not None:
            setattr(plain_of(result), MARK, mark)
        return result

    return made


_ASKING: dict[tuple[Any, str], Any] = {
    (place, name): _asking(getattr(place, name))
    for place, names in ((torch.Tensor, _METHODS), (_torch, _FUNCTIONS))
    for name in names
}
_storage = torch.Tensor.untyped_storage
_ORIGINALS = {asking: getattr(place, name) for (place, name), asking in _ASKING.items()}
_ASKING |= LEGACY
_ASKING[torch.Tensor, "_make_subclass"] = _following(getattr(torch.Tensor, "_make_subclass"), 1)
_ASKING[torch.Tensor, "as_subclass"] = _following(torch.Tensor.as_subclass, 0)


@contextmanager
def answerable(refusal: Callable[[str], Exception]) -> Iterator[None]:
    """Inside, `answered_by` has an effect. Other threads keep PyTorch's own methods.

    Scripted methods are refused where PyTorch would end the process.
    """
    replaced = _ASKING | scripted(refusal)
    before = {(place, name): vars(place).get(name, _MISSING) for place, name in replaced}
    try:
        for (place, name), asking in replaced.items():
            setattr(place, name, asking)
        yield
    finally:
        for (place, name), function in before.items():
            if function is _MISSING:  # it is inherited
                delattr(place, name)
            else:
                setattr(place, name, function)


@contextmanager
def answered_by(answer: Answer) -> Iterator[None]:
    """Inside, the answer to what Python asks of tensors is this one's, given PyTorch's own function."""
    token = _answer.set(answer)
    try:
        yield
    finally:
        _answer.reset(token)


def original(function: Any) -> Any:
    """PyTorch's own function: modes are told of the one that can be answered."""
    return _ORIGINALS.get(function, function)


def is_hidden_from_modes() -> bool:
    """Whether no mode would hear of the present call: one of PyTorch's own functions makes it."""
    if torch._C._is_torch_function_all_disabled():
        return True
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_ROOTS):
        if "handle_torch_function" in frame.f_code.co_names:
            return True
        frame = frame.f_back
    return False


def storage_id(tensor: torch.Tensor) -> int | None:
    """The same for a tensor and its views; None without one storage: sparse tensors, those of vmap."""
    if tensor.layout is not torch.strided or is_functorch_wrapped_tensor(tensor):
        return None
    return _storage(tensor)._cdata


def reserve(tensor: torch.Tensor) -> None:
    """Keep a storage's id from being used for another one, until it is released; its memory may be."""
    tensor.untyped_storage()._weak_ref()


def release(identifier: int) -> None:
    _torch.UntypedStorage._free_weak_ref(identifier)


def schema_of(operation: Any) -> Any:
    """The arguments that an ATen operation takes, and which of them it writes into; None if unknown."""
    return getattr(operation, "_schema", None)


def is_composite(operation: Any) -> bool:
    """Whether PyTorch itself writes an operation in terms of others, wherever it runs."""
    return hasattr(operation, "decompose") and operation._can_decompose()


def core_decompositions(also: Sequence[Any]) -> dict[Any, Any]:
    """PyTorch's own ways to write operations in terms of simpler ones."""
    from torch._decomp import core_aten_decompositions, get_decompositions

    return {**dict(core_aten_decompositions().items()), **get_decompositions(also)}


_apply: Any = Function.__dict__["apply"]
Apply = Callable[..., Any]
Handler = Callable[[Any, Apply, tuple[Any, ...], dict[str, Any]], Any]
_handler: ContextVar[Handler | None] = ContextVar("pathmix_handler", default=None)


@contextmanager
def functions_applied_by(handler: Handler) -> Iterator[None]:
    """Inside, the handler applies functions with a derivative of their own (`torch.autograd.Function`).

    It is given the function, PyTorch's way to apply it, and the arguments. Other threads keep PyTorch's way.
    """
    functions: Any = Function
    before, token = functions.__dict__["apply"], _handler.set(handler)
    functions.apply = classmethod(_handled)
    try:
        yield
    finally:
        functions.apply = before
        _handler.reset(token)


def _handled(function: Any, *arguments: Any, **options: Any) -> Any:
    plain, handler = _apply.__get__(None, function), _handler.get()
    if handler is None:
        return plain(*arguments, **options)
    return handler(function, plain, arguments, options)


class Context(FunctionCtx):
    """What the passes of such a function tell each other, without PyTorch between them."""

    to_save: tuple[Any, ...] = ()

    def __init__(self, needs_input_grad: tuple[bool, ...] = ()) -> None:
        self.needs_input_grad = needs_input_grad

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        return self.to_save


def forward_pass(function: Any, context: Context, *arguments: Any, **options: Any) -> Any:
    """The forward pass of a function with a derivative of its own, and no more."""
    if function.setup_context is Function.setup_context:
        return function.forward(context, *arguments, **options)
    results = function.forward(*arguments, **options)
    function.setup_context(context, arguments, results)
    return results


@contextmanager
def outside_of_trace() -> Iterator[None]:
    """Inside a trace by `functionalized`: ordinary PyTorch, that no mode and no handler sees."""
    _torch._disable_functionalization()
    token = _handler.set(None)
    try:
        with without_torch_function(), _disable_current_modes():
            yield
    finally:
        _handler.reset(token)
        _torch._enable_functionalization(reapply_views=True)


def plain_of(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor inside a functional one."""
    return _plain(tensor)


def plain_number(tensor: torch.Tensor) -> float:
    """The number that a tensor has at present, of which no mode is told."""
    with without_torch_function(), _disable_current_modes():
        return plain_of(tensor).detach().numpy().item()
