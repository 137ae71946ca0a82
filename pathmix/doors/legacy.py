"""Types that make tensors: `torch.Tensor([x, 1.0])`, `torch.FloatTensor([x, 1.0])`.

They read the numbers of tensors in lists, where a traced tensor has none, and end the process. No mode hears
of them. `torch.tensor`, which is heard of, makes the same.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

_construct, _type = torch.Tensor.__new__, torch.Tensor.type


class _Kind:
    """Stands for a type such as `torch.FloatTensor`."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if _has_tensors(args):
            return torch.tensor(args[0], dtype=self.kind.dtype)
        return self.kind(*args, **kwargs)

    def __instancecheck__(self, value: Any) -> bool:
        return isinstance(value, self.kind)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.kind, name)


def _constructed(*given: Any, **kwargs: Any) -> Any:
    # Of any signature: torch._dynamo, where it is loaded meanwhile, wants its own or none in particular.
    kind, *args = given
    if kind is torch.Tensor and _has_tensors(args):
        return torch.tensor(args[0], dtype=torch.get_default_dtype())
    return _construct(kind, *args, **kwargs)


def _typed(tensor: Any, dtype: Any = None, *args: Any, **kwargs: Any) -> Any:
    return _type(tensor, dtype.kind if isinstance(dtype, _Kind) else dtype, *args, **kwargs)


def _has_tensors(args: Sequence[Any]) -> bool:
    listed = bool(args) and isinstance(args[0], (list, tuple))
    return listed and any(isinstance(leaf, torch.Tensor) for leaf in tree_leaves(args[0]))


_KINDS = ("Float", "Double", "Half", "BFloat16", "Long", "Int", "Short", "Char", "Byte", "Bool")
LEGACY: dict[tuple[Any, str], Any] = {
    (torch.Tensor, "__new__"): _constructed,
    (torch.Tensor, "type"): _typed,
    **{(torch, f"{kind}Tensor"): _Kind(getattr(torch, f"{kind}Tensor")) for kind in _KINDS},
}
