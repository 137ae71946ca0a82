"""The way out for an operation without a lowering: PyTorch computes it, called back from JAX."""

import warnings
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from torch.fx import Node

from pathmix.errors import PathmixWarning
from pathmix.frontends.pyro.lowering.dtypes import as_jax_dtype, as_numpy


def call_torch(node: Node, arguments: Sequence[Any], options: dict[str, Any]) -> Any:
    """Values and gradients of one operation, computed by PyTorch while the compiled program waits."""
    warnings.warn(
        f"The PyTorch operation {node.target} has no JAX version in pathmix; PyTorch computes it while the "
        "compiled program waits. Results are right, but training is slow.",
        PathmixWarning,
        stacklevel=2,
    )
    leaves, treedef = jax.tree.flatten((list(arguments), options), is_leaf=lambda leaf: leaf is None)
    positions = [i for i, leaf in enumerate(leaves) if isinstance(leaf, jax.Array)]
    target: Any = node.target
    examples = node.meta["val"]
    shapes = jax.tree.map(
        lambda example: jax.ShapeDtypeStruct(tuple(example.shape), as_jax_dtype(example.dtype)), examples
    )

    def evaluate(tensors: Sequence[torch.Tensor]) -> Any:
        filled = list(leaves)
        for position, tensor in zip(positions, tensors, strict=True):
            filled[position] = tensor
        args, kwargs = jax.tree.unflatten(treedef, filled)
        return target(*args, **kwargs)

    def values(*arrays: Any) -> Any:
        with torch.no_grad():
            result = evaluate([_as_torch(array) for array in arrays])
        return jax.tree.map(lambda t, s: as_numpy(t).astype(s.dtype), result, shapes)

    def gradients(arrays: Sequence[Any], cotangents: Any) -> tuple[Any, ...]:
        tensors = [_as_torch(array) for array in arrays]
        smooth = [tensor.requires_grad_() for tensor in tensors if tensor.is_floating_point()]
        with torch.enable_grad():
            results = jax.tree.leaves(evaluate(tensors))
        pairs = [
            (result, _as_torch(cotangent))
            for result, cotangent in zip(results, jax.tree.leaves(cotangents), strict=True)
            if result.requires_grad
        ]
        if not pairs or not smooth:
            return tuple(np.zeros(np.shape(array), _float_dtype(array)) for array in arrays if _smooth(array))
        outputs, weights = zip(*pairs, strict=True)
        found = torch.autograd.grad(outputs, smooth, weights, allow_unused=True)
        return tuple(
            np.zeros(tuple(tensor.shape), _float_dtype(tensor)) if gradient is None else as_numpy(gradient)
            for tensor, gradient in zip(smooth, found, strict=True)
        )

    @jax.custom_vjp
    def operation(*arrays: Any) -> Any:
        return jax.pure_callback(values, shapes, *arrays, vmap_method="sequential")

    def forward(*arrays: Any) -> Any:
        return operation(*arrays), arrays

    def backward(arrays: Any, cotangents: Any) -> Any:
        smooth = [array for array in arrays if _smooth(array)]
        wanted = tuple(jax.ShapeDtypeStruct(array.shape, array.dtype) for array in smooth)
        # Integers have cotangents of a type that a callback does not take.
        cotangents = jax.tree.map(
            lambda c, s: c if jnp.issubdtype(s.dtype, jnp.floating) else jnp.zeros(s.shape),
            cotangents,
            shapes,
        )
        found = iter(
            jax.pure_callback(
                lambda a, c: gradients(a, c), wanted, list(arrays), cotangents, vmap_method="sequential"
            )
        )
        return tuple(
            next(found) if _smooth(array) else np.zeros(array.shape, jax.dtypes.float0) for array in arrays
        )

    operation.defvjp(forward, backward)
    return operation(*(leaves[position] for position in positions))


def _smooth(array: Any) -> bool:
    return bool(jnp.issubdtype(array.dtype, jnp.floating))


def _as_torch(array: Any) -> torch.Tensor:
    return torch.from_numpy(np.array(array))


def _float_dtype(value: Any) -> Any:
    return np.float64 if "64" in str(value.dtype) else np.float32
