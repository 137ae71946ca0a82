"""Pictures of posteriors: each function takes Axes, or makes some, and returns them. Extra `plots`."""

from pathmix.plots.paths import elbos, khats, weights
from pathmix.plots.sites import marginal, predictive
from pathmix.plots.tree import tree

__all__ = ["elbos", "khats", "marginal", "predictive", "tree", "weights"]
