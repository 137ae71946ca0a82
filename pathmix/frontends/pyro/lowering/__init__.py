"""From ATen operations to JAX: a table of operations, and how a graph is read through it."""

from collections.abc import Callable
from functools import cache
from typing import Any

import torch

from pathmix.doors.torch import core_decompositions, schema_of
from pathmix.frontends.pyro.lowering import (
    creation,
    elementwise,
    fourier,
    indexing,
    linear_algebra,
    memory,
    networks,
    reductions,
    shapes,
    special,
    windows,
)

aten: Any = torch.ops.aten
Lowering = Callable[..., Any]

# One entry for each operation, written where its family is.
TABLE: dict[Any, Lowering] = {
    **creation.TABLE,
    **elementwise.TABLE,
    **fourier.TABLE,
    **indexing.TABLE,
    **linear_algebra.TABLE,
    **networks.TABLE,
    **reductions.TABLE,
    **shapes.TABLE,
    **special.TABLE,
    **windows.TABLE,
}


# Operations that PyTorch counts among the simple ones, though it has a way to write them.
_ALSO = [
    aten._adaptive_avg_pool2d,
    aten._native_batch_norm_legit,
    aten._native_batch_norm_legit_no_training,
    aten.dist,
    aten.grid_sampler_2d,
    aten.hardtanh,
    aten.native_batch_norm,
    aten.native_group_norm,
    aten.upsample_bicubic2d,
    aten.upsample_bilinear2d,
    aten.upsample_trilinear3d,
]


@cache  # collecting them takes a while
def decompositions() -> dict[Any, Lowering]:
    """Ways to write operations in terms of simpler ones, for those not in the table: PyTorch's, and ours."""
    rules = core_decompositions(_ALSO)
    simple = {op: rule for op, rule in rules.items() if op not in TABLE and _takes_tensors(op)}
    return simple | memory.RULES


def _takes_tensors(operation: Any) -> bool:
    """Others give constants, which PyTorch computes: it cannot run its own rule for `eye(300)`."""
    schema = schema_of(operation)
    return schema is None or any("Tensor" in str(argument.type) for argument in schema.arguments)
