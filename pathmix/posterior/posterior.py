"""The result: a weighted mixture over paths, and what a user does with it next."""

import math
import os
import pickle
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import jax
import numpy as np

from pathmix.checks import check_choice
from pathmix.discovery.forks import DecisionTree
from pathmix.discovery.report import DiscoveryReport
from pathmix.engine.precision import Engine, engine_scope
from pathmix.engine.timings import Timings
from pathmix.errors import PathmixError
from pathmix.files.archive import write
from pathmix.frontends.surroundings import check_surroundings
from pathmix.posterior.components import Component
from pathmix.posterior.drawing import Drawing, ParametersOption
from pathmix.posterior.draws import position_of
from pathmix.posterior.fitted import FittedPath
from pathmix.posterior.html import as_html
from pathmix.posterior.inference_data import as_arviz
from pathmix.posterior.provenance import Provenance
from pathmix.posterior.questions import Questions
from pathmix.posterior.saving import Fingerprints, fingerprints, written
from pathmix.posterior.spot_checks import SpotCheck, spot_checks
from pathmix.posterior.stacking import Stacked, stack
from pathmix.posterior.table import table
from pathmix.posterior.verdict import Verdict, judged, with_error
from pathmix.posterior.weights import Weighting, global_elbo, logsumexp, path_weights, weight_errors
from pathmix.program.program import Program
from pathmix.program.seeds import Seed

SAVED = (
    "paths", "discovery", "notes", "interrupted", "timings", "weighting", "_flaws", "_sought", "_stacked",
    "_fresh_plates", "_seed", "_parameters", "provenance", "tree",
)  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class Posterior(Drawing, Questions):
    """A mixture over the paths of a program, best path first.

    Attributes:
        paths: its components.
        discovery: what discovery saw, and what it may have missed.
        notes: what to know before relying on it.
        interrupted: by Ctrl-C: then it is what was reached until then.
        timings: where the time went; None for methods that do not tell.
        provenance: how it was made: method, options, seed, versions; None in files that do not tell.
        weighting: what the weights are made of.
        tree: where paths part, how probable each way is, and which ways nobody saw.
    """

    paths: tuple[FittedPath, ...]
    discovery: DiscoveryReport
    notes: tuple[str, ...]
    interrupted: bool
    _program: Program | None  # None if it was loaded without its model
    _components: tuple[Component, ...]
    _engine: Engine
    timings: Timings | None = None
    provenance: Provenance | None = None
    weighting: Weighting = "evidence"
    tree: DecisionTree = DecisionTree()
    _flaws: tuple[str, ...] = ()  # why the weights cannot be right, whatever their errors
    _sought: bool = True  # whether evidences were looked for beyond what guides tell
    _stacked: Stacked | None = None
    _fresh_plates: bool = False  # see `with_fresh_plates`
    _fingerprints: Fingerprints | None = None  # of the program, where a file tells them
    _spot_checks: tuple[SpotCheck, ...] | None = None  # of the program, where a file tells them
    _seed: Seed | None = None  # of a run that can be resumed
    _parameters: ParametersOption = "fixed"  # how they were found

    @cached_property
    def elbo(self) -> float:
        """The global ELBO, a lower bound on the log-evidence of the discovered paths."""
        return global_elbo([path.elbo for path in self.paths], [path.weight for path in self.paths])

    @cached_property
    def log_evidence(self) -> float:
        """The log-evidence of the discovered paths together."""
        return logsumexp([path.log_evidence for path in self.paths])

    @cached_property
    def log_evidence_error(self) -> float:
        """Its standard error, from those of the paths."""
        return self._evidence_errors[1]

    @cached_property
    def weight_errors(self) -> dict[str, float]:
        """The standard error of each weight, by the path's label; NaN for stacking, where nobody knows it."""
        errors = self._evidence_errors[0]
        if self.weighting == "elbo":
            errors, _ = weight_errors(
                [path.elbo for path in self.paths], [path.elbo_error for path in self.paths]
            )
        elif self.weighting == "stacking":
            errors = [math.nan] * len(self.paths)
        return {path.label: e for path, e in zip(self.paths, errors, strict=True)}

    @cached_property
    def _evidence_errors(self) -> tuple[list[float], float]:
        return weight_errors(
            [path.log_evidence for path in self.paths], [path.log_evidence_error for path in self.paths]
        )

    @cached_property
    def verdict(self) -> Verdict:
        """What can be relied on: `verdict.ok` says whether the weights are right within their errors."""
        return judged(
            self.paths,
            self._evidence_errors[0],
            self.discovery,
            self._flaws,
            interrupted=self.interrupted,
            weighting=self.weighting,
            sought=self._sought,
            stacked=self._stacked,
        )

    def reweight(self, weighting: Weighting) -> "Posterior":
        """This posterior with weights made of "evidence", or of the "elbo" as in the paper.

        "stacking" gives those that predict best: they maximise the leave-one-out predictive density of the
        observations. They are no probabilities of paths.
        """
        check_choice("The weighting", weighting, ("evidence", "elbo", "stacking"))
        stacked = None
        if weighting == "stacking":
            check_surroundings("posterior.reweight", ())
            with engine_scope(self._engine):
                stacked = stack(self.paths, self._components)
            weights = stacked.weights
        else:
            logs = [path.elbo if weighting == "elbo" else path.log_evidence for path in self.paths]
            if all(np.isnan(logs)):
                raise PathmixError("The method that made this posterior has no ELBOs.")
            weights = path_weights(logs)
        order = np.argsort(-weights, kind="stable")
        return replace(
            self,
            paths=tuple(replace(self.paths[i], weight=float(weights[i])) for i in order),
            _components=tuple(self._components[i] for i in order),
            weighting=weighting,
            _stacked=stacked,
        )

    @cached_property
    def weights(self) -> dict[str, float]:
        """The weight of each path, by its label."""
        return {path.label: path.weight for path in self.paths}

    @property
    def parameters(self) -> dict[str, Any]:
        """The values of the program's parameters, by name, fixed or learned; a module's are a tree of arrays.

        If every path has its own there is no such thing: `path.parameters` has them, also otherwise.
        """
        if self._parameters == "per-path":
            raise PathmixError(
                "Every path has its own values of parameters: posterior.paths[0].parameters, and so on."
            )
        return {name: value for path in reversed(self.paths) for name, value in path.parameters.items()}

    @cached_property
    def address_weights(self) -> dict[tuple[str, ...], float]:
        """Weights of address paths: what the paper calls straight-line programs."""
        grouped: dict[tuple[str, ...], float] = {}
        for path in self.paths:
            grouped[path.addresses] = grouped.get(path.addresses, 0.0) + path.weight
        return grouped

    @cached_property
    def observed(self) -> tuple[str, ...]:
        """The names of observed sites, on whatever paths."""
        names = (name for component in self._components for name in component.outline.observed)
        return tuple(dict.fromkeys(names))

    @cached_property
    def likelihood_evaluations(self) -> int:
        """Of all paths together."""
        return sum(path.likelihood_evaluations for path in self.paths)

    @property
    def title(self) -> str:
        """How many paths there are, and their evidence, in one line."""
        count = f"{len(self.paths)} path" + ("s" if len(self.paths) > 1 else "")
        reached = f"log evidence {with_error(self.log_evidence, self.log_evidence_error)}"
        if self.weighting == "elbo":
            reached = f"global ELBO {self.elbo:.3f}"
        return f"Posterior over {count}, {reached}"

    @property
    def _shown_errors(self) -> list[float] | None:
        return self._evidence_errors[0] if self.weighting == "evidence" else None

    @property
    def _remarks(self) -> list[str]:
        return [f"Note: {note}" for note in self.notes]

    def __str__(self) -> str:
        lines = [self.title, "", table(self.paths, self._shown_errors), ""]
        return "\n".join([*lines, self.discovery.unseen, f"Verdict: {self.verdict}", *self._remarks])

    def _repr_html_(self) -> str:
        remarks = [self.discovery.unseen, *self._remarks]
        verdict = f"Verdict: {self.verdict}"
        return as_html(self.title, self.paths, self._shown_errors, verdict, self.verdict.ok, remarks)

    __repr__ = __str__

    def with_fresh_plates(self) -> "Posterior":
        """This posterior, whose `predict` takes new elements of plates from their prior.

        For new groups, items or users: a latent site inside a plate that a draw lacks, or has with another
        shape, is drawn afresh, whole, given the other sites of the draw. It is then among the predictions.
        """
        return replace(self, _fresh_plates=True)

    def to_arviz(
        self, seed: int | jax.Array = 0, count: int = 1_000, *, path: str | int | None = None
    ) -> Any:
        """Draws, replicates, data and pointwise log-likelihoods for ArviZ, as one chain.

        A DataTree where `arviz_base` is installed, else an InferenceData of `arviz`. Sites that a draw's path
        lacks are missing values there; `path` and `label` are coordinates. With `path`, everything is of that
        path alone, and nothing is missing. Sites called "chain" or "draw" are "chain_" and "draw_" there.
        Log-likelihoods are given all latent sites, those that were summed out among them. What needs the
        model is left out of a posterior that was loaded without it.
        """
        return as_arviz(self if path is None else self._alone(path), seed, count)

    def _alone(self, path: str | int) -> "Posterior":
        """One of the paths, with all the weight."""
        position = position_of(path, self._labels)
        self._check_drawable(position)
        return replace(
            self,
            paths=(replace(self.paths[position], weight=1.0),),
            _components=(self._components[position],),
        )

    def report(self, file: str | os.PathLike[str]) -> Path:
        """Write a page for a browser: verdict, paths with their sites, pictures, timings, settings, versions.

        One file that needs nothing else. Pictures need the extra `plots`; those of predictions, the model.
        """
        from pathmix.report import write_page

        check_surroundings("posterior.report", ())
        return write_page(self, file)

    def as_pyro_guide(self) -> Callable[..., None]:
        """The posterior of a Pyro model as a guide for it, for Pyro's `Predictive` and `Trace_ELBO`.

        Sites differ from draw to draw, so tell `Predictive` which ones to return (`return_sites`).
        """
        shapes = {site.name: site.shape for part in self._components for site in part.outline.sites}
        return self._bound.frontend.as_guide(self._bound.model, shapes, self._joint_draw)

    def save(self, file: str | os.PathLike[str]) -> None:
        """Write it into a file, for `pathmix.load`: arrays, JSON, and code for XLA; nothing is pickled."""
        check_surroundings("posterior.save", ())
        write(file, self._written())

    def _written(self) -> bytes:
        fields = {name: getattr(self, name) for name in SAVED}
        with engine_scope(self._engine):
            checks = self._spot_checks
            if checks is None and self._program is not None:
                checks = tuple(spot_checks(self.paths, self._components, self._program))
            return written(
                {**fields, "precision": self._engine.precision},
                self._components,
                fingerprints(self._program) if self._program is not None else self._fingerprints,
                checks or (),
            )

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        from pathmix.posterior.loading import unpickled

        program = self._program
        bound = None if program is None else (program.model, program.args, program.kwargs, program.limits)
        try:
            pickle.dumps(bound, protocol)
        except Exception as error:
            raise PathmixError(
                f"The model of this posterior, or its arguments, cannot be pickled ({error}). Use "
                "posterior.save(file), and pathmix.load(file, model, ...)."
            ) from error
        return unpickled, (self._written(), bound)

    def __copy__(self) -> "Posterior":
        return self

    def __deepcopy__(self, _: Any) -> "Posterior":
        return self
