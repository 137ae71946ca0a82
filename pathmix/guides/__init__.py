"""Variational families."""

from pathmix.guides.base import Guide, SplitGuide, StructuredGuide, moments
from pathmix.guides.flow import Flow
from pathmix.guides.fullrank import FullRank
from pathmix.guides.lowrank import LowRank
from pathmix.guides.meanfield import MeanField

__all__ = ["Flow", "FullRank", "Guide", "LowRank", "MeanField", "SplitGuide", "StructuredGuide", "moments"]
