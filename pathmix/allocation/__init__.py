"""Sharing the budget between paths."""

from pathmix.allocation.asynchronous import AsynchronousHalving
from pathmix.allocation.base import Allocation, Candidate
from pathmix.allocation.online import OnlineAllocation, OnlineSuccessiveHalving, Round
from pathmix.allocation.successive_halving import SuccessiveHalving
from pathmix.allocation.uniform import Uniform

__all__ = [
    "Allocation",
    "AsynchronousHalving",
    "Candidate",
    "OnlineAllocation",
    "OnlineSuccessiveHalving",
    "Round",
    "SuccessiveHalving",
    "Uniform",
]
