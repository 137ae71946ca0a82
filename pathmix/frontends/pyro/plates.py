"""Subsampled plates: a program sees the whole data, or indices that are put in from outside."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from pyro.poutine.subsample_messenger import SubsampleMessenger

from pathmix.program.slp import Plate

# The indices to use for a plate, or None for all of it.
Choice = Callable[[Plate], torch.Tensor | None]


def whole(plate: Plate) -> None:
    """No minibatches."""
    del plate


@contextmanager
def subsampling(choice: Choice) -> Iterator[None]:
    """Decide what subsampled plates draw. Pyro checks sizes before any handler could change them."""
    original = SubsampleMessenger._subsample

    def _subsample(
        name: str,
        size: Any = None,
        subsample_size: Any = None,
        subsample: Any = None,
        *rest: Any,
    ) -> Any:
        if size is not None and subsample is None and subsample_size is not None and subsample_size < size:
            subsample = choice(Plate(name, int(size), int(subsample_size)))
            subsample_size = None if subsample is None else subsample_size
        return original(name, size, subsample_size, subsample, *rest)

    SubsampleMessenger._subsample = staticmethod(_subsample)  # pyright: ignore
    try:
        yield
    finally:
        SubsampleMessenger._subsample = staticmethod(original)  # pyright: ignore
