"""Subsampled plates: a program sees the whole data, or indices that are put in from outside."""

from collections.abc import Callable
from contextlib import AbstractContextManager

import torch

from pathmix.doors import pyro as doors
from pathmix.program.slp import Plate

# The indices to use for a plate, or None for all of it.
Choice = Callable[[Plate], torch.Tensor | None]


def whole(plate: Plate) -> None:
    """No minibatches."""
    del plate


def subsampling(choice: Choice) -> AbstractContextManager[None]:
    """Decide what subsampled plates draw."""
    return doors.subsampling(lambda name, size, part: choice(Plate(name, int(size), int(part))))
