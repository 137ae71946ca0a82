"""Rounds: where parameters are, and where the draws of a round say that they should go.

Parameters that no path shares are learned apart: the evidence is a sum over paths, so each group of paths
that have parameters in common has a maximum of its own. With parameters per path, every path is a group.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from pathmix.engine.executables import Executables
from pathmix.errors import ParameterError, RejectionError
from pathmix.methods.learning.climb import climb
from pathmix.methods.learning.ratios import Ratios, path_ratios
from pathmix.methods.learning.setting import Setting
from pathmix.posterior.posterior import Posterior
from pathmix.posterior.weights import path_weights
from pathmix.program.parameters import Part, parts_of, plain, with_parts
from pathmix.program.path import Path
from pathmix.program.seeds import Seed

_DRAWS = 8_192  # of a group of paths
_BLOCK = 1_024  # of a path, at least
_NEGLIGIBLE = 0.001  # of the weight of a group
_CONFIRMED = 2.0  # standard errors
_GAIN, _WHOLE_GAIN = 1e-4, 5e-3  # nats that matter, in a round with a small budget and with all of it
_PROBE = 0.5  # of an unconstrained parameter that seems to have no slope
_FLAT = 0.02  # nats over one unit of an unconstrained parameter
_MOST_PROBED = 64  # parameters

How = Literal["learn", "per-path"]


@dataclass(frozen=True)
class _Step:
    """What a round says of a group."""

    ratios: Ratios
    paths: tuple[Path, ...]
    there: np.ndarray
    settled: bool


class State:
    """Where parameters are, and how far their learning has come."""

    def __init__(self, how: How, seed: Seed, executables: Executables) -> None:
        self.how: How = how
        self.seed, self.executables = seed, executables
        self.values: dict[str, Any] = {}  # that paths share
        self.own: dict[Path, dict[Part, np.ndarray]] = {}
        self.rounds = 0
        self.settled = self.was_interrupted = False
        self.flat: dict[str, Any] = {}  # values of parameters on which the evidence hardly depends
        self._steps: list[_Step] = []

    @property
    def setting(self) -> Setting:
        return Setting(self.values, dict(self.own), self.executables)

    def start_at(self, posterior: Posterior) -> None:
        """Go on from a posterior."""
        if self.how == "learn":
            self.values = posterior.parameters
        else:
            self.values = plain(posterior._bound.params)
            self.own = {path.path: parts_of(path.parameters) for path in posterior.paths}

    def take(self, posterior: Posterior) -> None:
        """The values that parameters have in a posterior, initial ones among them."""
        self.rounds += 1
        self.settled = False
        self.values = {**plain(posterior._bound.params), **self.values}

    def interrupted(self) -> "State":
        self.settled, self.was_interrupted = False, True
        return self

    def look(self, posterior: Posterior, *, is_whole: bool) -> None:
        """See what the draws of a round tell."""
        gain = _WHOLE_GAIN if is_whole else _GAIN
        self._steps = []
        missed = False
        for number, group in enumerate(_groups(posterior, apart=self.how == "per-path")):
            ratios = self._ratios(posterior, group, self.seed.child(self.rounds, number))
            if ratios is None:
                missed = True
                continue
            if self.rounds == 1:
                _refuse_jumps(ratios)
            there, settled = _step(ratios, gain)
            paths = tuple(posterior.paths[position].path for position in group)
            self._steps.append(_Step(ratios, paths, there, settled))
        self.settled = not missed and all(step.settled for step in self._steps)

    def move(self) -> None:
        """Go where the last look said."""
        for step in self._steps:
            moved = step.ratios.values(step.there)
            if self.how == "learn":
                self.values = with_parts(self.values, moved)
            else:
                self.own |= {path: {**self.own.get(path, {}), **moved} for path in step.paths}

    def find_flat(self) -> None:
        """See which parameters with a constraint have no maximum that the draws could tell."""
        self.flat = {}
        for step in self._steps:
            ratios = step.ratios
            if len(ratios.parameters) > _MOST_PROBED:
                continue
            here = ratios.look(ratios.start)
            for parameter in ratios.parameters:
                places = ratios.places[parameter.part]
                if parameter.is_bounded and np.any(here.slope[places]):
                    slope = float(here.slope[places].sum()) / np.sqrt(len(places))
                    curvature, error = ratios.curvature(parameter.part)
                    if slope**2 - curvature < max(_FLAT, 2 * error):
                        self.flat[parameter.name] = ratios.values(ratios.start)[parameter.part]

    def _ratios(self, posterior: Posterior, group: Sequence[int], seed: Seed) -> Ratios | None:
        """Of the paths of a group that matter; None if one cannot be drawn from."""
        weights = path_weights([posterior.paths[position].log_evidence for position in group])
        found = []
        for position, weight in zip(group, weights.tolist(), strict=True):
            if weight > _NEGLIGIBLE:
                draws = _BLOCK * max(1, round(weight * _DRAWS / _BLOCK))
                component = posterior._components[position]
                try:
                    path = path_ratios(component, draws, seed.child(position), self.executables)
                except RejectionError:
                    return None
                found.append((*path, weight))
        return Ratios(found)


def _step(ratios: Ratios, least: float) -> tuple[np.ndarray, bool]:
    """Where a group should go, and whether that is no farther than chance leads.

    Half of the draws find a step, the other half confirm it.
    """
    first = climb(lambda at: ratios.look(at, "first"), ratios.start)
    found = ratios.look(first, "second")
    settled = not found.value > max(least, _CONFIRMED * found.error)
    return climb(ratios.look, ratios.start if settled else first), settled


def _groups(posterior: Posterior, *, apart: bool) -> Iterator[list[int]]:
    """Paths that have parameters in common, by position; those without parameters are in none."""
    groups: list[tuple[set[Part], list[int]]] = []
    for position, (path, component) in enumerate(zip(posterior.paths, posterior._components, strict=True)):
        parts = {p.part for p in component.slp.parameters} if component.slp is not None else set()
        if not parts or not path.status.usable or not np.isfinite(path.log_evidence):
            continue
        joined = [] if apart else [group for group in groups if group[0] & parts]
        groups = [group for group in groups if not any(group is one for one in joined)]
        groups.append(
            (parts.union(*(one[0] for one in joined)), [*(p for one in joined for p in one[1]), position])
        )
    return (positions for _, positions in groups)


def _refuse_jumps(ratios: Ratios) -> None:
    """Refuse parameters that change the density in jumps only: there is no slope to follow."""
    here = ratios.look(ratios.start)
    for parameter in ratios.parameters:
        places = ratios.places[parameter.part]
        if len(places) == 0 or np.any(here.slope[places]):
            continue
        for away in (-_PROBE, _PROBE):
            there = ratios.start.copy()
            there[places] += away
            if ratios.look(there).value != here.value:
                raise ParameterError(
                    f"The parameter {parameter.name!r} at {parameter.source} changes the density in jumps "
                    "only (it is compared with something, or rounded), so there is no slope along which it "
                    "could be learned. Make it a sample statement with a prior, or keep parameters fixed "
                    '(parameters="fixed").'
                )
