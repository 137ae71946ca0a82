"""Checks of SDVI's options, made at construction: a run never fails halfway for a typing error."""

from typing import TYPE_CHECKING

import optax
from numpyro.infer.autoguide import AutoGuide

from pathmix.checks import check_choice, check_positive_int
from pathmix.errors import OptionError
from pathmix.guides import FullRank, Guide, LowRank, MeanField
from pathmix.training.starts import Starts

if TYPE_CHECKING:
    from pathmix.sdvi import SDVI

NAMED_GUIDES: dict[str, Guide] = {"meanfield": MeanField(), "fullrank": FullRank(), "lowrank": LowRank()}


def check_options(options: "SDVI") -> None:
    if not callable(options.model):
        raise OptionError(f"The model must be callable, not {options.model!r}.")
    if isinstance(options.guide, str):
        check_choice("guide", options.guide, tuple(NAMED_GUIDES))
    elif isinstance(options.guide, AutoGuide):
        raise OptionError(
            "NumPyro's autoguides belong to one whole model; pathmix makes a guide for every path. "
            f"guide takes {', '.join(map(repr, NAMED_GUIDES))}, a Guide, or a callable slp -> Guide."
        )
    elif isinstance(options.guide, type) or not (isinstance(options.guide, Guide) or callable(options.guide)):
        raise OptionError(f"guide must be a name, a Guide instance or a callable, not {options.guide!r}.")
    elif isinstance(options.guide, Guide):
        try:
            hash(options.guide)
        except TypeError:
            raise OptionError(
                f"The guide {options.guide!r} is not hashable; make it a frozen dataclass."
            ) from None
    for name, needed in (("discovery", "discover"), ("allocation", "survivors")):
        value = getattr(options, name)
        if isinstance(value, type) or not hasattr(value, needed):
            raise OptionError(f"{name} must be an object like the default one, not {value!r}.")
    if not isinstance(options.optimizer, optax.GradientTransformation):
        raise OptionError(f"optimizer must be an optax optimiser, not {options.optimizer!r}.")
    check_positive_int("particles", options.particles)
    check_positive_int("elbo_samples", options.elbo_samples)
    if not isinstance(options.starts, Starts):
        check_positive_int("starts", options.starts)
    if isinstance(options.annealing, bool) or not isinstance(options.annealing, (int, float)):
        raise OptionError(f"annealing must be a number, not {options.annealing!r}.")
    if not 0 <= options.annealing <= 1:
        raise OptionError(f"annealing is a share of training, from 0 to 1, not {options.annealing!r}.")
    check_choice("gradient", options.gradient, ("auto", "reparam", "score", "truncated"))
    check_choice("precision", options.precision, ("float64", "float32"))
    for name in ("boxes", "progress"):
        if not isinstance(getattr(options, name), bool):
            raise OptionError(f"{name} must be True or False, not {getattr(options, name)!r}.")
    if options.threads is not None:
        check_positive_int("threads", options.threads)
