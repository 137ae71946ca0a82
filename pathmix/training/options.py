"""How paths are trained, and what is told of it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import optax


@dataclass(frozen=True)
class TrainingOptions:
    optimizer: optax.GradientTransformation
    particles: int
    elbo_samples: int
    annealing: float = 0.0  # share of a start's first stretch with a tempered likelihood
    adapt_gradient: bool = True  # to jumps of the density
    rejection_tries: int = 20
    stop_early: bool = True  # where further steps would bring next to nothing
    at_mean: bool = False  # the first start is at the prior's mean with scale one, not matched to the prior


class Turn(NamedTuple):
    """What a start did in one call."""

    steps: int
    elbo: float


Told = Callable[[Turn], None]
