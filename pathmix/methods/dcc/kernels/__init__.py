"""Ways to move Markov chains along a path."""

from pathmix.methods.dcc.kernels.base import Kernel
from pathmix.methods.dcc.kernels.nuts import NUTS
from pathmix.methods.dcc.kernels.random_walk import RandomWalk

__all__ = ["NUTS", "Kernel", "RandomWalk"]
