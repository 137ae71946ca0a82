"""What SDVI is compared with, on the same programs and with the same results."""

from experiments.baselines.autoguide import WholeAutoGuide
from experiments.baselines.bbvi import BBVI

__all__ = ["BBVI", "WholeAutoGuide"]
