"""Sites that cannot be drawn."""

import sys
from typing import Any

import numpy as np

from pathmix.errors import InvalidParameterError, UnsupportedSiteError
from pathmix.program.source import Source, caller


def not_drawn(name: str, distribution: Any, source: Source) -> UnsupportedSiteError:
    """For a distribution that has no way to be drawn from, as improper ones have none."""
    what = type(distribution).__name__
    prior = "an improper prior" if what.startswith("Improper") else "a prior without draws"
    said = f"The site {name!r} at {source} has {prior} ({what}), which cannot be drawn from."
    if found := _reparameterised():
        own, of = found
        return UnsupportedSiteError(
            f"{said} {own} puts it in the place of {of!r}. Leave that reparameterisation out: "
            f"{of!r} is drawn and trained as the program has it."
        )
    return UnsupportedSiteError(
        f"{said} Paths are found by running the program forward, so every latent site needs a proper prior: "
        "a wide Normal, for example."
    )


def _reparameterised() -> tuple[str, str] | None:
    """The library's reparameterisation that makes the present site, and the site that it is of."""
    frame = sys._getframe(1)
    while frame is not None:
        own, name = (frame.f_locals.get(local) for local in ("self", "name"))
        if isinstance(name, str) and (kind := type(own).__name__).endswith("Reparam"):
            return kind, name
        frame = frame.f_back
    return None


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
