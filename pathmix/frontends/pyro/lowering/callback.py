"""The way out for an operation without a lowering: PyTorch computes it, called back from JAX."""

import threading
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch

from pathmix.errors import PathmixWarning
from pathmix.frontends.pyro.lowering.derivatives import has_slope, with_derivative
from pathmix.frontends.pyro.lowering.dtypes import as_jax_dtype, as_numpy
from pathmix.frontends.pyro.lowering.host import call_host
from pathmix.frontends.pyro.tape import Node, Shape, replaced

_named: set[Any] = set()  # operations that a warning was given about, in this process
_naming = threading.Lock()


def call_torch(node: Node, values: Mapping[Node, Any]) -> Any:
    """Values and gradients of one operation, computed by PyTorch while the compiled program waits."""
    _warn_once(node.target)
    sources = node.sources
    arrays = [jnp.asarray(values[source]) for source in sources]
    target: Any = node.target
    examples, structure = jax.tree.flatten(node.result, is_leaf=lambda part: isinstance(part, Shape))
    shapes = [jax.ShapeDtypeStruct(e.shape, as_jax_dtype(e.dtype)) for e in examples]

    def evaluate(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        given = dict(zip(sources, tensors, strict=True))
        args, options = replaced((node.args, node.kwargs), Node, given.__getitem__)
        result = target(*args, **options)
        return jax.tree.leaves(result)

    def compute(*arrays: np.ndarray) -> list[np.ndarray]:
        with torch.no_grad():
            results = evaluate([_as_torch(array) for array in arrays])
        return [as_numpy(result.resolve_conj().resolve_neg()) for result in results]

    def differentiate(*arrays: np.ndarray) -> list[np.ndarray]:
        tensors = [_as_torch(array) for array in arrays]
        inputs, weights = tensors[: len(sources)], tensors[len(sources) :]
        smooth = [tensor.requires_grad_() for tensor in inputs if _is_smooth(tensor)]
        with torch.enable_grad():
            results = [result for result in evaluate(inputs) if _is_smooth(result)]
        # Of a gradient by complex numbers, the two libraries mean conjugates.
        pairs = [(r, w.to(r.dtype).conj()) for r, w in zip(results, weights, strict=True) if r.requires_grad]
        found: Sequence[Any] = [None] * len(smooth)
        if pairs:
            found = torch.autograd.grad(
                [r for r, _ in pairs], smooth, [w for _, w in pairs], allow_unused=True
            )
        return [
            as_numpy(torch.zeros_like(tensor) if gradient is None else gradient.conj().resolve_conj())
            for tensor, gradient in zip(smooth, found, strict=True)
        ]

    def forward(*arrays: Any) -> list[Any]:
        return call_host(compute, shapes, *arrays)

    def backward(*values: Any) -> list[Any]:
        arrays = values[: len(sources)]
        wanted = [jax.ShapeDtypeStruct(array.shape, array.dtype) for array in arrays if has_slope(array)]
        return call_host(differentiate, wanted, *values)

    return jax.tree.unflatten(structure, with_derivative(forward, backward, arrays))


def _warn_once(operation: Any) -> None:
    with _naming:
        if operation in _named:
            return
        warnings.warn(
            f"The PyTorch operation {operation} has no JAX version in pathmix; PyTorch computes it while the "
            "compiled program waits. Results are right, but training is slow.",
            PathmixWarning,
            stacklevel=2,
        )
        _named.add(operation)


def _is_smooth(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


def _as_torch(array: Any) -> torch.Tensor:
    return torch.from_numpy(np.array(array))  # a copy: the program may reuse the memory
