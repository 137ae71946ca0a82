"""Bayesian inference on programs whose structure is random."""

from pathmix.allocation import SuccessiveHalving, Uniform
from pathmix.discovery import PriorDiscovery
from pathmix.draws import Draws
from pathmix.errors import PathmixError, PathmixWarning, ProgramError
from pathmix.guides import FullRank, Guide, LowRank, MeanField
from pathmix.posterior import FittedPath, Posterior
from pathmix.sdvi import SDVI
from pathmix.status import Status
from pathmix.training.starts import Starts
from pathmix.version import __version__

__all__ = [
    "SDVI",
    "Draws",
    "FittedPath",
    "FullRank",
    "Guide",
    "LowRank",
    "MeanField",
    "PathmixError",
    "PathmixWarning",
    "Posterior",
    "PriorDiscovery",
    "ProgramError",
    "Starts",
    "Status",
    "SuccessiveHalving",
    "Uniform",
    "__version__",
]
