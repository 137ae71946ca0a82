"""Draws from a posterior, and what is computed at draws: predictions, likelihoods, densities."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, overload

import jax
import numpy as np

from pathmix.engine.precision import Engine, engine_scope
from pathmix.errors import ArgumentsError, MissingModelError, PathmixError, ValueLookupError
from pathmix.frontends.surroundings import check_surroundings
from pathmix.posterior.components import Component, TruncatedGuide
from pathmix.posterior.draws import Draws, Piece, position_of
from pathmix.posterior.fitted import FittedPath
from pathmix.posterior.likelihoods import log_likelihoods
from pathmix.posterior.predictions import observed_data, simulate
from pathmix.posterior.redraw import redraw
from pathmix.program.locating import as_numbers, path_at
from pathmix.program.program import JointDraw, Program
from pathmix.program.seeds import Seed
from pathmix.program.signature import check_arguments
from pathmix.program.wishes import Wishes
from pathmix.warn import warn

_SHORT = 1.0  # nats, by which the draws of a guide are not those of the posterior
ParametersOption = Literal["fixed", "learn", "per-path"]


class Drawing:
    """A weighted mixture over paths, to be drawn from."""

    paths: tuple[FittedPath, ...]
    _program: Program | None
    _components: tuple[Component, ...]
    _engine: Engine
    _fresh_plates: bool
    _parameters: ParametersOption

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

    def _data(self, draws: Draws) -> dict[str, np.ndarray]:
        """The values of observed sites, on the paths of some draws; the first path that has one tells it."""
        found: dict[str, np.ndarray] = {}
        with engine_scope(self._engine):
            for position in map(int, np.unique(draws.path)):
                own = draws.where_path(position)
                latent = {name: own[name][:1] for name in self.paths[position].addresses}
                found = observed_data(self._program_of(position), latent) | found
        return found

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
            return np.array([self._log_prob(run) for run in values.runs()])
        if isinstance(values, Mapping):
            return self._log_prob(values)
        runs = [*values] if isinstance(values, Iterable) else [values]
        if not all(isinstance(run, Mapping) for run in runs):
            raise ArgumentsError(
                "log_prob takes the values of a run by the names of its sites, a list of such, or draws as "
                f"`posterior.sample` gives them, and no {type(values).__name__}."
            )
        return np.array([self._log_prob(run) for run in runs])

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

    def _check_drawable(self, position: int) -> None:
        """Complain of a path without draws, and of draws that are no better than a guide that falls short."""
        path = self.paths[position]
        if path.log_evidence == -np.inf:
            raise PathmixError(f"The path {path.label!r} has no draws: {path.message}")
        short = path.log_evidence - path.elbo
        if isinstance(self._components[position], TruncatedGuide) and short > _SHORT:
            warn(
                f"The guide of the path {path.short_label!r} falls short of its evidence by {short:.1f} "
                "nats, and the path carries next to no weight, so that nothing better was looked for. Its "
                "draws are the guide's."
            )

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
            position = position_of(only, self._labels)
            self._check_drawable(position)
            weights = np.eye(len(weights))[position]
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
