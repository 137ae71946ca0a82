"""Checks of a method's options, made at construction: a run never fails halfway for a typing error."""

import os
from collections.abc import Callable
from numbers import Integral
from typing import Any, Literal, cast

import optax
from numpyro.infer.autoguide import AutoGuide

from pathmix.allocation import Allocation
from pathmix.checks import check_choice, check_positive_int
from pathmix.discovery import Discovery
from pathmix.engine.jobs import Executor, calls_python
from pathmix.engine.progress import Progress
from pathmix.errors import ClusterError, OptionError
from pathmix.guides import Flow, FullRank, Guide, LowRank, MeanField, StructuredGuide
from pathmix.methods.members import check_members, missing_members
from pathmix.program.program import Limits
from pathmix.target.target import Target
from pathmix.training.starts import Starts

GuideName = Literal["meanfield", "fullrank", "lowrank", "flow"]
NAMED_GUIDES: dict[GuideName, Callable[[], Guide]] = {
    "meanfield": MeanField,
    "fullrank": FullRank,
    "lowrank": LowRank,
    "flow": Flow,
}


def check_options(options: Any) -> None:
    """Those of SDVI."""
    check_method(options)
    _check_guide_option(options.guide)
    example = f"pathmix.SuccessiveHalving(budget={_number(options.allocation, 100_000)})"
    check_members("allocation", options.allocation, Allocation, example)
    check_positive_int("The budget of the allocation", options.allocation.budget)
    check_optimizer(options.optimizer)
    check_positive_int("particles", options.particles)
    check_positive_int("elbo_samples", options.elbo_samples)
    check_choice("weights", options.weights, ("evidence", "elbo", "stacking"))
    check_positive_int("evidence_draws", options.evidence_draws)
    if options.smc_evaluations != 0 or isinstance(options.smc_evaluations, bool):
        check_positive_int("smc_evaluations", options.smc_evaluations)
    if not isinstance(options.symmetry, bool):
        raise OptionError(f"symmetry must be True or False, not {options.symmetry!r}.")
    check_choice("initial", options.initial, ("prior", "mean"))
    if options.starts != "auto" and not isinstance(options.starts, Starts):
        check_positive_int("starts", options.starts)
    if isinstance(options.annealing, bool) or not isinstance(options.annealing, (int, float)):
        raise OptionError(f"annealing must be a number, not {options.annealing!r}.")
    if not 0 <= options.annealing <= 1:
        raise OptionError(f"annealing is a share of training, from 0 to 1, not {options.annealing!r}.")
    if not isinstance(options.stop_early, bool):
        raise OptionError(f"stop_early must be True or False, not {options.stop_early!r}.")
    check_choice("gradient", options.gradient, ("auto", "reparam", "score", "truncated"))
    if not isinstance(options.boxes, bool):
        raise OptionError(f"boxes must be True or False, not {options.boxes!r}.")
    check_choice("parameters", options.parameters, ("fixed", "learn", "per-path"))
    if options.threads is not None:
        check_positive_int("threads", options.threads)
    if options.executor != "threads" and not isinstance(options.executor, Executor):
        raise OptionError(
            f'executor must be "threads", or one like pathmix.RayExecutor(), not {options.executor!r}.'
        )
    check_positive_int("memory_limit", options.memory_limit)
    if not isinstance(options.cache, (bool, str, os.PathLike)):
        raise OptionError(f"cache must be True, False or a folder, not {options.cache!r}.")

    if options.checkpoint is not None and not isinstance(options.checkpoint, (str, os.PathLike)):
        raise OptionError(f"checkpoint must be a folder, not {options.checkpoint!r}.")
    check_choice("on_change", options.on_change, ("refuse", "restart"))


def check_method(options: Any) -> None:
    """What every method of inference has: a model, a discovery, a precision and a progress bar."""
    if not callable(options.model):
        raise OptionError(f"The model must be callable, not {options.model!r}.")
    example = f"pathmix.PriorDiscovery({_number(options.discovery, 1_000)})"
    check_members("discovery", options.discovery, Discovery, example)
    if not isinstance(options.discovery.limits, Limits):
        raise OptionError(f"The limits of the discovery must be Limits, not {options.discovery.limits!r}.")
    label = getattr(options, "label", None)
    if label is not None and not callable(label):
        raise OptionError(f"label must be a function that names a path, not {label!r}.")
    check_choice("precision", options.precision, ("float64", "float32"))
    if not isinstance(options.progress, bool) and (lacking := missing_members(options.progress, Progress)):
        raise OptionError(
            "progress must be True, False or an object that is told of it, not "
            f"{options.progress!r}: it lacks {', '.join(lacking)}."
        )


def check_optimizer(optimizer: Any) -> None:
    lacking = [name for name in ("init", "update") if not callable(getattr(optimizer, name, None))]
    if lacking or not isinstance(optimizer, optax.GradientTransformation):
        what = f": it lacks {', '.join(lacking)}" if lacking else ""
        raise OptionError(
            f"optimizer must be an optax optimiser, such as optax.adam(0.01), not {optimizer!r}{what}."
        )


def check_guide(what: str, guide: Any) -> None:
    """A guide that a path can be given."""
    if lacking := missing_members(guide, Guide):
        raise OptionError(f"{what} {guide!r}, which is not a Guide: it lacks {', '.join(lacking)}.")
    try:
        hash(guide)
    except TypeError:
        raise OptionError(f"{what} {guide!r}, which is not hashable; make it a frozen dataclass.") from None


def _check_guide_option(guide: Any) -> None:
    if isinstance(guide, str):
        check_choice("guide", guide, ("auto", *NAMED_GUIDES))
        if guide != "auto":
            NAMED_GUIDES[cast(GuideName, guide)]()  # which needs what it needs
    elif isinstance(guide, AutoGuide):
        raise OptionError(
            "NumPyro's autoguides belong to one whole model; pathmix makes a guide for every path. "
            f"guide takes {', '.join(map(repr, NAMED_GUIDES))}, a Guide, or a callable slp -> Guide."
        )
    elif isinstance(guide, type):
        raise OptionError(f"guide must be a name, a Guide instance or a callable, not the class {guide!r}.")
    elif isinstance(guide, StructuredGuide):
        return  # the guides that it gives are checked
    elif not callable(guide) or not missing_members(guide, Guide):
        check_guide("guide must be a name, a Guide instance or a callable slp -> Guide, not", guide)


def _number(given: Any, default: int) -> str:
    """For an example: the number that was given in the place of an object."""
    usable = isinstance(given, Integral) and not isinstance(given, bool)
    return f"{max(int(given), 1) if usable else default:_}"


def check_shippable(target: Target) -> None:
    """What an executor is given has to be data."""
    if (operation := calls_python(target.graphs.density.jaxpr)) is not None:
        raise ClusterError(
            f"The program cannot be computed by other processes: it calls back to Python ({operation}), as "
            "jax.pure_callback and operations of PyTorch that JAX lacks do. Leave executor= out."
        )
