"""All that `import pathmix` offers; it takes the libraries seconds to load."""

from pathmix.allocation import (
    Allocation,
    AsynchronousHalving,
    OnlineSuccessiveHalving,
    SuccessiveHalving,
    Uniform,
)
from pathmix.cluster.ray import RayExecutor
from pathmix.discovery import Discovery, Enumeration, Guided, PriorDiscovery
from pathmix.engine.progress import Progress
from pathmix.errors import PathmixError, PathmixWarning, ProgramError
from pathmix.guides import Flow, FullRank, Guide, LowRank, MeanField
from pathmix.methods.dcc import DCC, NUTS, RandomWalk
from pathmix.methods.sdvi import SDVI
from pathmix.posterior.draws import Draws
from pathmix.posterior.fitted import FittedPath
from pathmix.posterior.loading import load
from pathmix.posterior.posterior import Posterior
from pathmix.posterior.status import Status
from pathmix.posterior.verdict import Verdict
from pathmix.training.starts import Starts
from pathmix.version import __version__

__all__ = [
    "DCC",
    "NUTS",
    "SDVI",
    "Allocation",
    "AsynchronousHalving",
    "Discovery",
    "Draws",
    "Enumeration",
    "FittedPath",
    "Flow",
    "FullRank",
    "Guide",
    "Guided",
    "LowRank",
    "MeanField",
    "OnlineSuccessiveHalving",
    "PathmixError",
    "PathmixWarning",
    "Posterior",
    "PriorDiscovery",
    "ProgramError",
    "Progress",
    "RandomWalk",
    "RayExecutor",
    "Starts",
    "Status",
    "SuccessiveHalving",
    "Uniform",
    "Verdict",
    "__version__",
    "load",
]
