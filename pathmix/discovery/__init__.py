"""Finding the paths of a program."""

from pathmix.discovery.base import Discovered, DiscoveredPath, Discovery, refuse_impossible
from pathmix.discovery.enumeration import Enumeration
from pathmix.discovery.guided import Guided
from pathmix.discovery.prior import PriorDiscovery

__all__ = [
    "Discovered",
    "DiscoveredPath",
    "Discovery",
    "Enumeration",
    "Guided",
    "PriorDiscovery",
    "refuse_impossible",
]
