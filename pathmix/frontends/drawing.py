"""Sites that cannot be drawn."""

from typing import Any

import numpy as np

from pathmix.errors import InvalidParameterError, UnsupportedSiteError
from pathmix.program.source import Source, caller


def not_drawn(name: str, distribution: Any, source: Source) -> UnsupportedSiteError:
    """For a distribution that has no way to be drawn from, as improper ones have none."""
    what = type(distribution).__name__
    prior = "an improper prior" if what.startswith("Improper") else "a prior without draws"
    return UnsupportedSiteError(
        f"The site {name!r} at {source} has {prior} ({what}), which cannot be drawn from. Paths are found by "
        "running the program forward, so every latent site needs a proper prior: a wide Normal, for example."
    )


def not_drawn_as_whole(
    name: str, distribution: Any, source: Source, error: Exception
) -> UnsupportedSiteError:
    """For a distribution that PyTorch cannot draw from with parameters of this type."""
    return UnsupportedSiteError(
        f"The site {name!r} at {source} cannot be drawn: PyTorch says of {type(distribution).__name__} that "
        f"{error}. Parameters that are whole numbers, as of a Categorical site, must be made floats: 1.0 * k."
    )


def check_proper(name: str, lower: np.ndarray, upper: np.ndarray) -> None:
    """A uniform distribution without an end has no draws either; nor has one whose ends are swapped."""
    if not np.all(np.isfinite(lower)) or not np.all(np.isfinite(upper)):
        raise UnsupportedSiteError(
            f"The site {name!r} at {caller()} has an improper prior (Uniform, without an end), which cannot "
            "be drawn from. Give it finite bounds, or take a wide Normal."
        )
    if np.all(lower >= upper) and lower.size:
        raise InvalidParameterError(
            f"The ends of Uniform at the site {name!r} at {caller()} are {lower.ravel()[0]:g} and "
            f"{upper.ravel()[0]:g}: there is nothing between them. The lower end comes first."
        )
