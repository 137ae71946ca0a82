"""Operations on tensors of different precision, of which PyTorch refuses some."""

from typing import Any

import torch
from torch import Tensor


def in_one_precision(func: Any, args: Any, kwargs: Any) -> Any:
    """Run an operation. Where it refuses a mixture of precisions, take the higher one.

    Random values come in the engine's precision; data and networks may be in another, and matrix
    products, unlike arithmetic, do not promote.
    """
    try:
        return func(*args, **kwargs)
    except RuntimeError as error:
        tensors = [a for a in args if isinstance(a, Tensor) and a.is_floating_point()]
        dtypes = {tensor.dtype for tensor in tensors}
        if len(dtypes) < 2 or not ("dtype" in str(error) or "scalar type" in str(error)):
            raise
        writes = func is Tensor.__setitem__ or getattr(func, "__name__", "").endswith("_")
        dtype = tensors[0].dtype if writes else torch.float64
        cast = [a.to(dtype) if isinstance(a, Tensor) and a.is_floating_point() else a for a in args]
        return func(*(args[:1] if writes else cast[:1]), *cast[1:], **kwargs)
