"""Latent sites whose prior has atoms: values of positive probability, beside others with a density."""

from collections.abc import Iterator
from typing import Any

from pathmix.errors import UnsupportedSiteError
from pathmix.program.source import caller

_HURDLES = {"HurdleProbs", "ZeroInflatedProbs", "ZeroInflatedDistribution"}
_CENSORED = {"LeftCensoredDistribution", "RightCensoredDistribution", "IntervalCensoredDistribution"}


def check_atoms(name: str, fn: Any) -> None:
    """Refuse them: probabilities and densities are not to be compared."""
    for part in _parts(fn):
        kinds = {kind.__name__ for kind in type(part).__mro__}
        if kinds & _CENSORED:
            raise UnsupportedSiteError(
                f"The site {name!r} at {caller()} is latent, and {type(part).__name__} is for data: what it "
                "gives to a value at the limit is the probability of all beyond. Draw the value before it is "
                "cut off, from the distribution inside."
            )
        if kinds & _HURDLES or any(map(_is_atom, _components(part))):
            raise UnsupportedSiteError(
                f"The site {name!r} at {caller()} has a prior ({type(part).__name__}) in which some single "
                "values have a probability and others a density, which cannot be compared. Draw which of "
                "the two it is by a site of its own, and the rest on a branch: "
                f"`{name} = sample({name!r}, ...) if sample('any', Bernoulli(p)) else 0.0`."
            )


def _parts(fn: Any) -> Iterator[Any]:
    """A distribution, those that it is made of, and those inside."""
    yield fn
    inner = getattr(fn, "base_dist", None)
    for part in (*_components(fn), *(() if inner is None else (inner,))):
        yield from _parts(part)


def _components(fn: Any) -> list[Any]:
    several = getattr(fn, "component_distributions", None)  # MixtureGeneral
    one = [getattr(fn, name, None) for name in ("component_distribution", "component0", "component1")]
    return [part for part in (*(several or ()), *one) if part is not None]


def _is_atom(component: Any) -> bool:
    inner = component
    while (base := getattr(inner, "base_dist", None)) is not None:
        inner = base
    return type(inner).__name__ == "Delta" or bool(component.support.is_discrete)
