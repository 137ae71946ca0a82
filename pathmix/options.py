"""Checks of SDVI's options, made at construction: a run never fails halfway for a typing error."""

from typing import TYPE_CHECKING

import optax
from numpyro.infer.autoguide import AutoGuide

from pathmix.checks import check_choice, check_method, check_positive_int
from pathmix.errors import OptionError
from pathmix.guides import FullRank, Guide, LowRank, MeanField
from pathmix.training.starts import Starts

if TYPE_CHECKING:
    from pathmix.sdvi import SDVI

NAMED_GUIDES: dict[str, Guide] = {"meanfield": MeanField(), "fullrank": FullRank(), "lowrank": LowRank()}


def check_options(options: "SDVI") -> None:
    check_method(options)
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
    allocation = options.allocation
    if isinstance(allocation, type) or not hasattr(allocation, "survivors"):
        raise OptionError(f"allocation must be an object like the default one, not {allocation!r}.")
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
    if not isinstance(options.boxes, bool):
        raise OptionError(f"boxes must be True or False, not {options.boxes!r}.")
    if options.threads is not None:
        check_positive_int("threads", options.threads)
