"""The result: a weighted mixture over paths, and what a user does with it next."""

import math
import os
import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, overload

import jax
import numpy as np

from pathmix.checks import check_choice
from pathmix.discovery.report import DiscoveryReport
from pathmix.engine.precision import Engine, engine_scope
from pathmix.engine.timings import Timings
from pathmix.errors import MissingModelError, PathmixError, ValueLookupError
from pathmix.files.archive import write
from pathmix.frontends.surroundings import check_surroundings
from pathmix.posterior.components import Component
from pathmix.posterior.draws import Draws, Piece, position_of
from pathmix.posterior.fitted import FittedPath
from pathmix.posterior.likelihoods import log_likelihoods
from pathmix.posterior.predictions import simulate
from pathmix.posterior.questions import Questions, Run
from pathmix.posterior.redraw import redraw
from pathmix.posterior.saving import Fingerprints, fingerprints, written
from pathmix.posterior.stacking import Stacked, stack
from pathmix.posterior.table import table
from pathmix.posterior.verdict import Verdict, judged, with_error
from pathmix.posterior.weights import Weighting, global_elbo, logsumexp, path_weights, weight_errors
from pathmix.program.locating import as_numbers, path_at
from pathmix.program.program import JointDraw, Program
from pathmix.program.seeds import Seed
from pathmix.program.signature import check_arguments
from pathmix.program.wishes import Wishes

ParametersOption = Literal["fixed", "learn", "per-path"]
SAVED = (
    "paths", "discovery", "notes", "interrupted", "timings", "weighting", "_flaws", "_sought", "_stacked",
    "_fresh_plates", "_seed", "_parameters",
)  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class Posterior(Questions):
    """A mixture over the paths of a program, best path first."""

    paths: tuple[FittedPath, ...]
    discovery: DiscoveryReport
    notes: tuple[str, ...]
    interrupted: bool  # by Ctrl-C: then it is what was reached until then
    _program: Program | None  # None if it was loaded without its model
    _components: tuple[Component, ...]
    _engine: Engine
    timings: Timings | None = None  # where the time went; None for methods that do not tell
    weighting: Weighting = "evidence"  # what the weights are made of
    _flaws: tuple[str, ...] = ()  # why the weights cannot be right, whatever their errors
    _sought: bool = True  # whether evidences were looked for beyond what guides tell
    _stacked: Stacked | None = None
    _fresh_plates: bool = False  # see `with_fresh_plates`
    _fingerprints: Fingerprints | None = None  # of the program, where a file tells them
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
    def likelihood_evaluations(self) -> int:
        """Of all paths together."""
        return sum(path.likelihood_evaluations for path in self.paths)

    def __str__(self) -> str:
        count = f"{len(self.paths)} path" + ("s" if len(self.paths) > 1 else "")
        reached = f"log evidence {with_error(self.log_evidence, self.log_evidence_error)}"
        if self.weighting == "elbo":
            reached = f"global ELBO {self.elbo:.3f}"
        errors = self._evidence_errors[0] if self.weighting == "evidence" else None
        lines = [f"Posterior over {count}, {reached}", "", table(self.paths, errors), ""]
        lines += [self.discovery.unseen, f"Verdict: {self.verdict}"]
        return "\n".join([*lines, *(f"Note: {note}" for note in self.notes)])

    __repr__ = __str__

    def sample(self, seed: int | jax.Array, count: int, *, path: str | int | None = None) -> Draws:
        """Draws from the mixture: latent and deterministic sites, NaN where a path lacks one.

        With `path`, a label or a position, they are draws of that path alone.
        """
        runs_program = any(component.inert for component in self._components)
        check_surroundings("posterior.sample", (seed, count), runs_program=runs_program)
        with engine_scope(self._engine):
            taken, pieces = self._sample(Seed.of(seed), count, path)
            return Draws(pieces, taken, self._labels)

    def predict(
        self, seed: int | jax.Array, count: int, /, *args: Any, with_latents: bool = False, **kwargs: Any
    ) -> Draws:
        """Simulate the observed sites, with new arguments, for draws from the mixture; the deterministic too.

        Without arguments, those of the run are taken: the predictions are replicates of its data. Latent
        sites keep the values that `sample` gives for this seed; `with_latents`, they are among the
        predictions. A site that the new arguments make the program draw and a draw does not have, or has with
        another shape, is an error; see `with_fresh_plates`.
        """
        check_surroundings("posterior.predict", (seed, args, kwargs))
        with engine_scope(self._engine):
            root = Seed.of(seed)
            path, pieces = self._sample(root, count)
            predicted: list[Piece] = []
            for number, (rows, values) in enumerate(pieces):
                position = int(path[rows[0]])
                wishes = Wishes(
                    given={name: values[name] for name in self.paths[position].addresses},
                    complete=True,
                    fresh_plates=self._fresh_plates,
                    simulate=self._open_sites(position),
                )
                program = self._called_with(position, args, kwargs)
                latent = {name: values[name] for name in wishes.given} if with_latents else {}
                predicted += simulate(program, wishes, root.child(3, number), rows, latent)
            return Draws(predicted, path, self._labels)

    def with_fresh_plates(self) -> "Posterior":
        """This posterior, whose `predict` takes new elements of plates from their prior.

        For new groups, items or users: a latent site inside a plate that a draw lacks, or has with another
        shape, is drawn afresh, whole, given the other sites of the draw. It is then among the predictions.
        """
        return replace(self, _fresh_plates=True)

    def _open_sites(self, position: int) -> frozenset[str]:
        """Sites that are simulated for draws of a path, also where new arguments leave them unobserved."""
        observed = {name for component in self._components for name in component.outline.observed}
        latent = {name for path in self.paths for name in path.addresses}
        # A name that some path infers is data only on those that observe it.
        return frozenset(self._components[position].outline.observed) | (observed - latent)

    @overload
    def log_likelihood(
        self, seed: Any, count: int, /, *args: Any, pointwise: Literal[True], **kwargs: Any
    ) -> Draws: ...

    @overload
    def log_likelihood(
        self,
        seed: int | jax.Array,
        count: int,
        /,
        *args: Any,
        pointwise: Literal[False] = False,
        **kwargs: Any,
    ) -> np.ndarray: ...

    def log_likelihood(
        self, seed: int | jax.Array, count: int, /, *args: Any, pointwise: bool = False, **kwargs: Any
    ) -> np.ndarray | Draws:
        """The log-likelihood of data for draws from the mixture, those that `sample` gives for the seed.

        Without arguments the data are those of the run. Its mean is the expected log predictive density;
        `logmeanexp` of it the log predictive density. With `pointwise`, there is an array for each observed
        site, with the log-likelihood of each of its elements.
        """
        check_surroundings("posterior.log_likelihood", (seed, args, kwargs))
        with engine_scope(self._engine):
            path, pieces = self._sample(Seed.of(seed), count)
            found: list[Piece] = []
            for rows, values in pieces:
                position = int(path[rows[0]])
                latent = {name: values[name] for name in self.paths[position].addresses}
                program = self._called_with(position, args, kwargs)
                for site, own, values in log_likelihoods(program, latent, pointwise=pointwise):
                    found.append((rows[own], {site: values}))
            if pointwise:
                return Draws(found, path, self._labels)
            (column,) = Draws(found, path, self._labels).values()
            return column

    def log_prob(self, values: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> Any:
        """Log-density of the mixture at the latent values of one run; -inf off a support or the known paths.

        The path is found by running the program with these values. Of many runs (draws, or a list of such
        values) there is an array of log-densities.
        """
        if isinstance(values, Draws):
            return np.array([self._log_prob(Run(values, row)) for row in range(len(values.path))])
        if not isinstance(values, Mapping):
            return np.array([self._log_prob(row) for row in values])
        return self._log_prob(values)

    def _log_prob(self, values: Mapping[str, Any]) -> float:
        check_surroundings("posterior.log_prob", dict(values))
        given = {name: as_numbers(name, value) for name, value in values.items()}
        with engine_scope(self._engine):
            known = {part.outline.recorded: position for position, part in enumerate(self._components)}
            path = path_at(self._bound, given, supported=self._parameters != "per-path")
            if path in known and self._parameters == "per-path":  # where supports are that path's own
                path = path_at(self._program_of(known[path]), given)
            if path is None or path not in known:
                return -np.inf
            outline = self._components[known[path]].outline
            names = {*path.addresses, *outline.deterministics}
            if extra := sorted(set(values) - names):
                raise ValueLookupError(
                    f"The program does not draw {', '.join(map(repr, extra))} with these values; it "
                    f"draws {', '.join(map(repr, path.addresses))}."
                )
            return self._log_prob_on(known[path], given)

    def _log_prob_on(self, position: int, values: dict[str, Any]) -> float:
        """Log-density of the mixture at values that follow a path."""
        weight = self.paths[position].weight
        if weight == 0:
            return -np.inf
        local = self._components[position].log_prob(values)
        return -np.inf if np.isnan(local) else float(np.log(weight) + local)

    def _joint_draw(self, seed: int | jax.Array) -> JointDraw:
        with engine_scope(self._engine):
            (position,), ((_, drawn),) = self._sample(Seed.of(seed), 1)
            values = {name: drawn[name][0] for name in self.paths[position].addresses}
            density = self._log_prob_on(position, values)
            return JointDraw(int(position), values, density, self._open_sites(position))

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
            return written(
                {**fields, "precision": self._engine.precision},
                self._components,
                fingerprints(self._program) if self._program is not None else self._fingerprints,
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

    @property
    def _bound(self) -> Program:
        if self._program is None:
            raise MissingModelError(
                "This posterior was loaded without its model, which this needs: pathmix.load(file, model, "
                "...), with the arguments that it was fitted to."
            )
        return self._program

    def _called_with(self, position: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Program:
        """The program of a path with other arguments; with those of the run, if there are none."""
        program = self._program_of(position)
        if not args and not kwargs:
            return program
        check_arguments(program.model, args, kwargs)
        return program.with_arguments(args, kwargs)

    def _program_of(self, position: int) -> Program:
        """The program with the parameters of a path."""
        if self._parameters != "per-path":
            return self._bound
        return self._bound.with_parameters({**self._bound.params, **self.paths[position].parameters})

    @property
    def _labels(self) -> list[str]:
        return [path.label for path in self.paths]

    def _sample(
        self, seed: Seed, count: int, only: str | int | None = None
    ) -> tuple[np.ndarray, list[Piece]]:
        """The path of each draw, and the values of each path's draws."""
        if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or count < 1:
            shown = repr(count) if np.ndim(count) == 0 else "an array"
            raise PathmixError(f"After the seed comes the number of draws, at least 1, not {shown}.")
        weights = np.array([path.weight for path in self.paths])
        if only is not None:
            weights = np.eye(len(weights))[position_of(only, self._labels)]
        if weights.sum() == 0:
            raise PathmixError(
                "No path carries weight, so there is nothing to draw from. "
                f"The best one says: {self.paths[0].message}"
            )
        path = seed.child(0).generator().choice(len(weights), size=count, p=weights / weights.sum())
        pieces = []
        for position in np.unique(path):
            rows, component = np.flatnonzero(path == position), self._components[position]
            drawn = component.draw(seed.child(1, int(position)), len(rows))
            if component.inert:
                again = seed.child(2, int(position))
                drawn = redraw(self._program_of(int(position)), component, again, drawn)
            pieces.append((rows, drawn))
        return path, pieces
