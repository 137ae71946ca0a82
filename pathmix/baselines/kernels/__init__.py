"""Ways to move Markov chains along a path."""

from pathmix.baselines.kernels.base import Kernel
from pathmix.baselines.kernels.nuts import NUTS
from pathmix.baselines.kernels.random_walk import RandomWalk

__all__ = ["NUTS", "Kernel", "RandomWalk"]
