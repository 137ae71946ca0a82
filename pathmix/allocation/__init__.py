"""Sharing the budget between paths."""

from pathmix.allocation.base import Allocation, Candidate
from pathmix.allocation.successive_halving import SuccessiveHalving
from pathmix.allocation.uniform import Uniform

__all__ = ["Allocation", "Candidate", "SuccessiveHalving", "Uniform"]
