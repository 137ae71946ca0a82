"""Divide, conquer and combine: Markov chains on every path."""

from pathmix.methods.dcc.dcc import DCC
from pathmix.methods.dcc.kernels import NUTS, Kernel, RandomWalk

__all__ = ["DCC", "NUTS", "Kernel", "RandomWalk"]
