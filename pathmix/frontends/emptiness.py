"""Statements about no elements: their density is one, whatever the distribution.

Some distributions cannot say so themselves: they fail on batches that are empty.
"""

from typing import Any

import numpy as np


def is_empty(distribution: Any, value: Any) -> bool:
    """Whether `log_prob` of the value has no terms. An empty event is one term, and counts."""
    batch, shape = tuple(distribution.batch_shape), tuple(np.shape(value))
    outer = shape[: len(shape) - distribution.event_dim]
    return 0 in (*batch, *outer) and 0 in np.broadcast_shapes(batch, outer)
