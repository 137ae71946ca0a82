"""Data of a wrong shape: what a library says about it names neither the site nor the line."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pathmix.errors import ShapeError
from pathmix.program.source import Source


def shape_error(msg: Any, source: Source) -> ShapeError | None:
    """What does not fit together at a site whose handling failed; None if its shapes do."""
    fn, value = msg["fn"], msg["value"]
    if not hasattr(fn, "event_shape"):
        return None
    events = len(fn.event_shape)
    batch, event = tuple(fn.batch_shape), tuple(fn.event_shape)
    plates = [frame for frame in msg["cond_indep_stack"] if frame.dim is not None]
    size = max((-frame.dim for frame in plates), default=0)
    inside = [1] * size
    for frame in plates:
        inside[frame.dim] = frame.size
    shape = () if value is None else tuple(np.shape(value))
    observed = (*((1,) * (events - len(shape))), *shape)
    parts = (observed[: len(observed) - events], batch, tuple(inside))
    if _fit(*parts) and (value is None or _fit(observed[len(observed) - events :], event)):
        return None
    told = [] if value is None else [f"the value has shape {shape}"]
    told.append(f"the distribution ({type(fn).__name__}) has shape {batch + event}")
    told += [f"the plate {frame.name!r} has size {frame.size}" for frame in plates]
    return ShapeError(
        f"At the site {msg['name']!r} at {source}, {' and '.join(told)}: these do not fit together. "
        "Shapes are compared from the right, and sizes must be equal, or 1. (Dimensions that belong to one "
        "draw, as those of a vector do, are marked with to_event.)"
    )


def failing_site(error: BaseException) -> Any:
    """The message of the site in whose handling a library raised an error, if it was in one."""
    found, traceback = None, error.__traceback__
    while traceback is not None:
        msg = traceback.tb_frame.f_locals.get("msg")
        if isinstance(msg, dict) and msg.get("type") == "sample":
            found = msg
        traceback = traceback.tb_next
    return found


def _fit(*shapes: Sequence[int]) -> bool:
    try:
        np.broadcast_shapes(*map(tuple, shapes))
    except ValueError:
        return False
    return True
