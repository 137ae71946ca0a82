"""Going on from a posterior: what an earlier run has reached, for one that finds the same paths again."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, cast

import jax
import numpy as np

from pathmix.allocation import Allocation
from pathmix.checks import check_positive_int
from pathmix.discovery.contenders import Contender
from pathmix.engine.precision import Precision
from pathmix.errors import ChangedError, OptionError
from pathmix.posterior.fitted import FittedPath
from pathmix.posterior.posterior import ParametersOption, Posterior
from pathmix.program.fingerprints import of_model, of_taken_along
from pathmix.program.path import Path
from pathmix.program.program import Program
from pathmix.program.seeds import Seed
from pathmix.training.fit import PathFit


def resumable(
    posterior: Posterior, model: Callable[..., Any], precision: Precision, parameters: ParametersOption
) -> tuple[Seed, Program]:
    """The seed and the program of a posterior; an error where something else was used."""
    program, seed = posterior._bound, posterior._seed
    if seed is None:
        raise OptionError("Only posteriors of SDVI can be resumed.")
    fingerprints = [(of_model(one), of_taken_along(one)) for one in (program.model, model)]
    if program.model is not model and fingerprints[0] != fingerprints[1]:
        raise ChangedError("The posterior is of another model than this SDVI.")
    if posterior._engine.precision != precision:
        raise ChangedError(
            f"The posterior was computed in {posterior._engine.precision}, not in {precision}."
        )
    if posterior._parameters not in ("fixed", parameters):
        raise ChangedError(
            "The parameters of the posterior were learned: resume it with "
            f'parameters="{posterior._parameters}".'
        )
    return seed, program


def with_budget(allocation: Allocation, budget: int | None) -> Allocation:
    """The allocation with another budget."""
    if budget is None:
        return allocation
    check_positive_int("budget", budget)
    names = {one.name for one in fields(cast(Any, allocation))}
    name = "budget" if "budget" in names else "budget_per_round"
    return replace(cast(Any, allocation), **{name: budget})


@dataclass(frozen=True)
class Earlier:
    """What a run goes on from, a posterior if there is one, and how its iterations are shared."""

    posterior: Posterior | None
    allocation: Allocation
    searches: bool = True  # for more paths

    @cached_property
    def worth(self) -> dict[Path, float]:
        """The log-evidences of its paths."""
        return {p.path: p.log_evidence for p in self._paths if np.isfinite(p.log_evidence)}

    @property
    def _paths(self) -> tuple[FittedPath, ...]:
        return () if self.posterior is None else self.posterior.paths

    def take_over(self, contenders: Sequence[Contender[PathFit]]) -> None:
        """Give guides the parameters that they had; twins share them."""
        known = {path.path: path for path in self._paths if path.steps > 0}
        taken = set[PathFit]()
        for one in contenders:
            before = known.get(one.slp.path)
            if before is not None and one.work not in taken and _fits(one.work, before):
                one.work.go_on_from(before)
                taken.add(one.work)


def _fits(fit: PathFit, before: FittedPath) -> bool:
    """Whether the parameters are of the same family and size."""
    if fit.start is None or before.guide is None or before.guide.family != fit.guide:
        return False
    own, theirs = fit.params, before.guide.params
    return jax.tree.structure(own) == jax.tree.structure(theirs) and all(
        np.shape(a) == np.shape(b) for a, b in zip(jax.tree.leaves(own), jax.tree.leaves(theirs), strict=True)
    )
