"""Priors of single numbers that both libraries know by the same names."""

from collections.abc import Sequence
from typing import Any

from pathmix.frontends.supports import noted
from pathmix.program.slp import Prior

_PARAMETERS = {
    "Beta": ("concentration1", "concentration0"),
    "Cauchy": ("loc", "scale"),
    "Exponential": ("rate",),
    "Gamma": ("concentration", "rate"),
    "HalfCauchy": ("scale",),
    "HalfNormal": ("scale",),
    "Laplace": ("loc", "scale"),
    "LogNormal": ("loc", "scale"),
    "Normal": ("loc", "scale"),
    "StudentT": ("df", "loc", "scale"),
    "Uniform": ("low", "high"),
}
Named = tuple[str, list[Any]]


def of_elements(fn: Any, library: Any) -> Named | None:
    """The name and the parameters of what each element is drawn from; None where that is not known.

    `library` is the module of distributions that it comes from.
    """
    while isinstance(fn, (library.MaskedDistribution, library.ExpandedDistribution, library.Independent)):
        fn = fn.base_dist
    name = type(fn).__name__
    if name not in _PARAMETERS or type(fn) is not getattr(library, name):
        return None
    return name, [getattr(fn, parameter) for parameter in _PARAMETERS[name]]


def prior(family: str, values: Sequence[Any], outputs: list[Any]) -> Prior:
    """With the parameters that are known; others are added to the outputs of the trace."""
    return Prior(family, noted(values, outputs))
