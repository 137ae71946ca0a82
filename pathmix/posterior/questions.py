"""Questions about the structure of a posterior: what exists, which values, which groups of paths."""

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import jax
import numpy as np

from pathmix.errors import PathmixError, ValueLookupError
from pathmix.posterior.components import Component
from pathmix.posterior.draws import Draws, Run, position_of
from pathmix.posterior.fitted import FittedPath
from pathmix.posterior.frames import frame
from pathmix.posterior.weights import Weighting, simulated_weights
from pathmix.warn import warn

if TYPE_CHECKING:
    import pandas as pd

Key = TypeVar("Key", bound=Hashable)
_DRAWS = 4_000  # for what only draws can tell
_FIELDS = (
    "weight", "weight_error", "log_evidence", "log_evidence_error", "elbo", "khat", "effective_draws",
    "prior_mass", "steps", "status", "message",
)  # fmt: skip
_QUANTILES = (0.05, 0.5, 0.95)


class Group(NamedTuple):
    """Paths that have something in common."""

    weight: float
    error: float  # its standard error; NaN where it is not known
    paths: tuple[FittedPath, ...]


class Questions:
    """What a posterior can be asked. Answers are about the paths that were found."""

    paths: tuple[FittedPath, ...]
    weighting: Weighting
    _components: tuple[Component, ...]
    sample: Callable[..., Draws]

    def path(self, which: str | int) -> FittedPath:
        """A path, by its label or its position."""
        return self.paths[position_of(which, [path.label for path in self.paths])]

    def exists(self, name: str) -> float:
        """The probability that a run has a site of this name: latent, deterministic or observed.

        Warns where no path has one: it may be a slip of the pen.
        """
        having = [
            path.weight
            for path, component in zip(self.paths, self._components, strict=True)
            if name in component.outline.names
        ]
        if not having:
            known = sorted({name for component in self._components for name in component.outline.names})
            warn(f"No path that was found has a site called {name!r}; there are {_shown(known)}.")
        return float(sum(having))

    def distribution(self, name: str, *, seed: int | jax.Array = 0, count: int = _DRAWS) -> dict[Any, float]:
        """The probabilities of the values of a discrete site; None stands for runs without it.

        They are sums of weights where the values are told by the paths, and shares of draws where they were
        summed out, or are those of a deterministic site.
        """
        having = [path for path in self.paths if name in path.addresses]
        if having and all(name in path.pinned for path in having):
            found = self._by(lambda path: _plain(path.pinned[name]) if name in path.pinned else None)
        else:
            draws = self.sample(seed, count)
            if name not in draws:
                raise self._unknown(name, draws)
            found = _shares(draws, name)
        return dict(sorted(found.items(), key=lambda item: _order(item[0])))

    def marginal(self, name: str, *, seed: int | jax.Array = 0, count: int = _DRAWS) -> np.ndarray:
        """Draws of a site from all paths that have it: its posterior, given that it exists.

        Of paths that give it different shapes there is none: ask for the draws of one (`path=` of `sample`).
        """
        draws = self.sample(seed, count)
        if name not in draws:
            raise self._unknown(name, draws)
        values, present = draws[name], draws.present(name)
        if not draws.filled(name)[present].all():
            raise PathmixError(
                f"Paths give the site {name!r} different shapes, so that it has no marginal; "
                "posterior.sample(seed, n, path=...) has its values on one of them."
            )
        return values[present]

    def probability(
        self, event: Callable[[Run], Any], *, seed: int | jax.Array = 0, count: int = _DRAWS
    ) -> float:
        """The share of draws for which a function of a run is true.

        A run has the values of the sites that it draws: `posterior.probability(lambda run: "b" in run and
        run["b"] > 0)`. From so many draws, it has a standard error of at most `0.5 / sqrt(count)`.
        """
        return sum(bool(event(run)) for run in self.sample(seed, count).runs()) / count

    def group(self, key: Callable[[FittedPath], Key]) -> dict[Key, Group]:
        """Paths grouped by any function of a path, heaviest group first."""
        members: dict[Key, list[int]] = {}
        for position, path in enumerate(self.paths):
            members.setdefault(key(path), []).append(position)
        simulated, groups = self._simulated(), dict[Key, Group]()
        for value, some in members.items():
            paths = tuple(self.paths[position] for position in some)
            groups[value] = Group(sum(path.weight for path in paths), _error(simulated, some), paths)
        return dict(sorted(groups.items(), key=lambda item: -item[1].weight))

    def summary(self, *, seed: int | jax.Array = 0, count: int = _DRAWS) -> "pd.DataFrame":
        """A row for each number of each site: how probable it is that it exists, and what it is then.

        `mean_error` is the standard error of the mean, from the number of draws and from the errors of the
        weights of the paths that have the site.
        """
        draws = self.sample(seed, count)
        simulated = self._simulated()
        with np.errstate(invalid="ignore"):  # of infinite numbers
            rows = [row for name in draws for row in self._described(draws, name, simulated)]
        columns = ["site", "exists", "exists_error", "mean", "mean_error", "sd", *_quantile_names()]
        table = {column: [row[column] for row in rows] for column in columns}
        return frame(table, "posterior.summary()").set_index("site")

    def table(self) -> "pd.DataFrame":
        """A row for each path, heaviest first."""
        errors = self._simulated().std(axis=0)
        rows = [{**vars(path), "weight_error": errors[i]} for i, path in enumerate(self.paths)]
        columns = {"path": [path.label for path in self.paths]}
        columns.update({field: [row[field] for row in rows] for field in _FIELDS})
        columns["status"] = [str(path.status) for path in self.paths]
        return frame(columns, "posterior.table()").set_index("path")

    def _described(self, draws: Draws, name: str, simulated: np.ndarray) -> Iterator[dict[str, Any]]:
        values, filled = draws[name].astype(float), draws.filled(name)
        for index in np.ndindex(*values.shape[1:]):
            present = filled[:, *index]
            own, paths = values[:, *index][present], draws.path[present]
            having = self._having(name, index, set(paths.tolist()))
            quantiles = np.quantile(own, _QUANTILES) if len(own) else [math.nan] * len(_QUANTILES)
            yield {
                "site": name + (f"[{','.join(map(str, index))}]" if index else ""),
                "exists": sum(self.paths[position].weight for position in having),
                "exists_error": _error(simulated, having),
                "mean": float(np.mean(own)),
                "mean_error": _error_of_mean(own, paths, simulated),
                "sd": float(np.std(own)),
                **dict(zip(_quantile_names(), map(float, quantiles), strict=True)),
            }

    def _having(self, name: str, index: tuple[int, ...], drawn: set[int]) -> list[int]:
        """Paths with a number of a site; of those that no draw took, by what is known of their shapes."""
        found = []
        for position, component in enumerate(self._components):
            shapes = {site.name: site.shape for site in component.outline.sites}
            shape = shapes.get(name)
            fits = shape is None or (
                len(shape) == len(index) and all(at < size for at, size in zip(index, shape, strict=True))
            )
            if position in drawn or (name in component.outline.names and fits):
                found.append(position)
        return found

    def _simulated(self) -> np.ndarray:
        """Weights as they may be, for the errors of evidences or ELBOs; nobody knows those of stacking."""
        if self.weighting == "stacking":
            return np.full((1, len(self.paths)), np.nan)
        by_elbo = self.weighting == "elbo"
        return simulated_weights(
            [path.elbo if by_elbo else path.log_evidence for path in self.paths],
            [path.elbo_error if by_elbo else path.log_evidence_error for path in self.paths],
        )[0]

    def _by(self, key: Callable[[FittedPath], Any]) -> dict[Any, float]:
        found: dict[Any, float] = {}
        for path in self.paths:
            if path.weight > 0:
                found[key(path)] = found.get(key(path), 0.0) + path.weight
        return found

    def _unknown(self, name: str, draws: Draws) -> ValueLookupError:
        known = [*(site for path in self.paths for site in path.addresses), *draws]
        return ValueLookupError(f"No path has a site called {name!r}; there are {_shown(known)}.")


def _shown(names: Iterable[str]) -> str:
    """Some of them."""
    known = list(dict.fromkeys(names))
    return ", ".join(map(repr, known[:20])) + (", ..." if len(known) > 20 else "")


def _error(simulated: np.ndarray, some: Sequence[int]) -> float:
    """Of the weight of some paths together."""
    return float(simulated[:, some].sum(axis=1).std())


def _error_of_mean(values: np.ndarray, paths: np.ndarray, simulated: np.ndarray) -> float:
    """Of draws, and of the weights with which paths come in."""
    positions, place = np.unique(paths, return_inverse=True)
    means = np.bincount(place, values) / np.bincount(place)
    weights = simulated[:, positions]
    total = weights.sum(axis=1)
    mixed = weights @ means / np.where(total > 0, total, np.nan)
    return float(np.hypot(np.std(values) / math.sqrt(len(values)), np.std(mixed)))


def _order(value: Any) -> tuple[Any, ...]:
    """Numbers, then tuples of them, then nothing."""
    return value is None, isinstance(value, tuple), () if value is None else value


def _quantile_names() -> list[str]:
    return [f"{100 * quantile:g}%" for quantile in _QUANTILES]


def _shares(draws: Draws, name: str) -> dict[Any, float]:
    present, values = draws.present(name), draws[name]
    own = values[present]
    if values.ndim > 1 or not np.array_equal(own, np.round(own)):
        raise PathmixError(
            f"The site {name!r} is not one discrete number; posterior.marginal({name!r}) has draws of it."
        )
    found: dict[Any, float] = {
        int(value): float(number) / len(present)
        for value, number in zip(*np.unique(own, return_counts=True), strict=True)
    }
    if not present.all():
        found[None] = float(np.mean(~present))
    return found


def _plain(value: Any) -> Hashable:
    """A number, or tuples of them."""
    array = np.asarray(value)
    return array.item() if array.ndim == 0 else tuple(_plain(part) for part in array)
