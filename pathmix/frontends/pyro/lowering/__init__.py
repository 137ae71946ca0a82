"""From ATen operations to JAX: a table of operations, and how a graph is read through it."""

from collections.abc import Callable
from typing import Any

from pathmix.frontends.pyro.lowering import (
    creation,
    elementwise,
    indexing,
    linear_algebra,
    reductions,
    shapes,
    special,
)

Lowering = Callable[..., Any]

# One entry for each operation, written where its family is.
TABLE: dict[Any, Lowering] = {
    **creation.TABLE,
    **elementwise.TABLE,
    **indexing.TABLE,
    **linear_algebra.TABLE,
    **reductions.TABLE,
    **shapes.TABLE,
    **special.TABLE,
}


def decompositions() -> dict[Any, Lowering]:
    """PyTorch's own ways to write operations in terms of simpler ones, for those not in the table."""
    from torch._decomp import core_aten_decompositions  # takes a while

    return {op: rule for op, rule in core_aten_decompositions().items() if op not in TABLE}
