"""Methods to compare with, on the same programs and with the same results."""

from pathmix.baselines.autoguide import AutoGuide
from pathmix.baselines.bbvi import BBVI
from pathmix.baselines.dcc import DCC
from pathmix.baselines.kernels import NUTS, RandomWalk

__all__ = ["BBVI", "DCC", "NUTS", "AutoGuide", "RandomWalk"]
