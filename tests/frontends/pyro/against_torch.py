"""A PyTorch function in both engines: as PyTorch runs it, and flattened and interpreted in JAX."""

from contextlib import contextmanager
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import torch

from pathmix.frontends.pyro.lowering.interpret import interpret

# Compiling is most of the time of these tests.
FAST_TO_COMPILE: dict = {"xla_backend_optimization_level": "0", "xla_cpu_parallel_codegen_split_count": 1}
if jax.__version_info__ < (0, 11):
    FAST_TO_COMPILE["xla_cpu_use_fusion_emitters"] = False


@dataclass(frozen=True)
class Run:
    """Outputs, and the gradients of a weighted sum of them by the smooth inputs."""

    values: list
    gradients: list


@contextmanager
def double_precision():
    """Floats as they are while the engine traces a program."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with jax.enable_x64(True):
            yield
    finally:
        torch.set_default_dtype(before)


def weights_of(index, output):
    return np.asarray(np.random.default_rng(index).normal(size=tuple(output.shape)))


def in_torch(function, tensors, smooth):
    """`smooth` says of each input whether to differentiate by it."""
    tensors = [tensor.detach().clone().requires_grad_(s) for tensor, s in zip(tensors, smooth, strict=True)]
    inputs = [tensor for tensor in tensors if tensor.requires_grad]
    outputs = function(*tensors)
    weighted = [(o, torch.as_tensor(weights_of(i, o))) for i, o in enumerate(outputs) if o.requires_grad]
    found = [None] * len(inputs)
    if weighted and inputs:
        sums, weights = zip(*weighted, strict=True)
        found = torch.autograd.grad(sums, inputs, weights, allow_unused=True)
    gradients = [torch.zeros_like(t) if g is None else g + 0 for t, g in zip(inputs, found, strict=True)]
    return Run([output.detach().numpy() for output in outputs], [g.numpy() for g in gradients])


def in_jax(graph, tensors, smooth):
    arrays = [jnp.asarray(tensor.detach().numpy()) for tensor in tensors]

    def weighted(floats, others):
        floats, others = iter(floats), iter(others)
        values = interpret(graph, [next(floats if s else others) for s in smooth])
        outputs = [values[node] for node in graph.outputs]
        floating = [(i, o) for i, o in enumerate(outputs) if jnp.issubdtype(o.dtype, jnp.floating)]
        return sum((jnp.sum(weights_of(i, o) * o) for i, o in floating), start=jnp.zeros(())), outputs

    run = jax.jit(jax.grad(weighted, has_aux=True), compiler_options=FAST_TO_COMPILE)
    floats = [array for array, s in zip(arrays, smooth, strict=True) if s]
    others = [array for array, s in zip(arrays, smooth, strict=True) if not s]
    gradients, values = run(floats, others)
    return Run([np.asarray(value) for value in values], [np.asarray(gradient) for gradient in gradients])
