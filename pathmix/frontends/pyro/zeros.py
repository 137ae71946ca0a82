"""Values of probability zero, to which PyTorch gives a density all the same: it keeps logarithms finite."""

from typing import Any

import numpy as np
import torch
from pyro import distributions as dist

from pathmix.doors.torch import plain_of
from pathmix.frontends.pyro.lowering.dtypes import as_numpy
from pathmix.frontends.pyro.tape import is_open


def never_drawn(fn: Any, value: torch.Tensor) -> torch.Tensor | None:
    """Whether a discrete site has elements that its probabilities exclude; None where they exclude none."""
    fn, probs = _probabilities(fn)
    if probs is None or not (is_open(probs) or _has_ends(as_numpy(plain_of(probs)))):
        return None
    if isinstance(fn, dist.Bernoulli):
        return torch.where(value == 1, probs == 0, probs == 1).any()
    if isinstance(fn, dist.Binomial):
        return (((value > 0) & (probs == 0)) | ((value < fn.total_count) & (probs == 1))).any()
    if isinstance(fn, dist.Categorical):
        numbers = torch.arange(probs.shape[-1])
        return ((probs == 0) & (numbers == value.unsqueeze(-1))).any()
    return None


def excluded(fn: Any) -> frozenset[int]:
    """The numbers that the probabilities of a single one exclude."""
    fn, probs = _probabilities(fn)
    if probs is None or tuple(fn.batch_shape) or not isinstance(fn, (dist.Bernoulli, dist.Categorical)):
        return frozenset()
    known = as_numpy(plain_of(probs))
    known = np.array([1 - known, known]) if isinstance(fn, dist.Bernoulli) else known
    return frozenset(np.flatnonzero(known == 0).tolist())


def _has_ends(probs: np.ndarray) -> bool:
    return bool(np.any((probs == 0) | (probs == 1)))


def _probabilities(fn: Any) -> tuple[Any, torch.Tensor | None]:
    """Of what a site's elements are drawn from, where it is given by probabilities."""
    while isinstance(fn, (dist.ExpandedDistribution, dist.Independent)):
        fn = fn.base_dist
    probs = getattr(fn, "_param", None)
    # Those that were computed from logits may be too small for a number.
    return fn, probs if probs is vars(fn).get("probs") else None
