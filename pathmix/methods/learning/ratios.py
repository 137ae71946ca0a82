"""Ratios: how evidences change with parameters, by importance sampling from the posteriors of paths.

With x from the posterior at theta, the mean of gamma(x; theta') / gamma(x; theta) is Z(theta') / Z(theta).
What is held fixed is the unconstrained vector of a path, so supports may move with parameters.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from pathmix.engine.batching import over_rows
from pathmix.engine.executables import Executables
from pathmix.methods.learning.climb import Point
from pathmix.posterior.components import Compiled, Component, TruncatedGuide
from pathmix.program.lifting import lifted, parts_at, site_of
from pathmix.program.parameters import Parameter, Part
from pathmix.program.seeds import Seed
from pathmix.program.values import SiteRows
from pathmix.regions.region import Region
from pathmix.target.target import Target, make_target

_BLOCK = 1_024  # draws that are looked at together
_FEWEST = 512  # draws of a path
_WORK = 2**32  # bytes that a look at all draws of a path may write

_STEP = 0.05  # of unconstrained parameters, for curvatures

Half = Literal["all", "first", "second"]  # of the draws
_ROWS: dict[Half, slice] = {"all": slice(None), "first": slice(0, None, 2), "second": slice(1, None, 2)}


@dataclass(frozen=True, eq=False)
class _Block:
    vectors: np.ndarray  # of the lifted target; what they have for parameters does not count
    log_weights: np.ndarray
    log_densities: np.ndarray  # at the parameters that the draws are from


@dataclass(frozen=True, eq=False)
class PathRatios:
    """Draws of a path, and its density at other values of its parameters."""

    target: Target
    parameters: tuple[Parameter, ...]
    start: np.ndarray  # unconstrained values of the parameters, one after another
    columns: np.ndarray  # where these stand in the vectors
    executables: Executables

    def blocks(self, component: Component, rows: SiteRows, count: int) -> list[_Block]:
        """Draws, weighted by how likely they are under the posterior if they are of a guide."""
        size = self.target.formula.rows_at_once(min(_BLOCK, count))
        found = []
        for first in range(0, count - size + 1, size):
            block = {name: values[first : first + size] for name, values in rows.items()}
            columns = tuple(map(jnp.asarray, self.target.columns(block)))
            vectors = self._call("vectors", _make_vectors, columns)
            log_densities, log_joints = self._call("density", _make_density, self.start, vectors)
            log_weights = np.zeros(size)
            if isinstance(component, TruncatedGuide) and component.width:
                log_weights = log_joints - _log_densities(component.compiled, block)
            usable = np.isfinite(log_weights) & np.isfinite(log_densities)
            found.append(_Block(vectors, np.where(usable, log_weights, -np.inf), log_densities))
        return found

    def look(self, at: np.ndarray, block: _Block, log_weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The log-weights of a block at other parameters, and the slope of the logarithm of their sum."""
        given = log_weights - np.where(np.isfinite(log_weights), block.log_densities, 0.0)
        return self._call("slope", _make_slope, at, block.vectors, given)

    def _call(self, what: str, make: Any, *given: Any) -> Any:
        rows = len(jax.tree.leaves(given[-1])[0])
        key = (what, self.target.structure, tuple(self.columns.tolist()), rows)
        build = partial(make, self.target, self.columns)
        return jax.tree.map(np.asarray, self.executables.call(key, build, *given, self.target.arguments))


def path_ratios(
    component: Component, draws: int, seed: Seed, executables: Executables
) -> tuple[PathRatios, list[_Block]]:
    """From draws of a component of a posterior."""
    slp = component.slp
    assert slp is not None
    now, raised = parts_at(slp), lifted(slp)
    free = {p.part: p.freed(now[p.part]) for p in slp.parameters}
    affordable = max(_FEWEST, _WORK // max(raised.graph.volume, 1))
    count = min(draws, affordable) if slp.free else 2  # one for each half
    rows = component.draw(seed, count)
    rows |= {site_of(part): np.repeat(value[None], count, axis=0) for part, value in free.items()}
    # Which region the path has does not matter: it does not move, and draws are inside.
    target = make_target(raised, Region("free", {}, (), {}), rows)
    numbers = dict(zip(target.coordinates.order, target.coordinates.slices, strict=True))
    places = {target.sites[number].name: range(*ends) for number, ends in numbers.items()}
    columns = [place for part in free for place in places.get(site_of(part), ())]
    start = np.concatenate([np.zeros(0), *(np.ravel(value) for value in free.values())])
    found = PathRatios(target, slp.parameters, start, np.array(columns, int), executables)
    return found, found.blocks(component, rows, count)


class Ratios:
    """The evidence of some paths together, at other values of the parameters that they share."""

    def __init__(self, paths: Sequence[tuple[PathRatios, list[_Block], float]]) -> None:
        """With the weight of each path."""
        self._paths = paths
        parts: dict[Part, tuple[Parameter, np.ndarray]] = {}
        for path, _, _ in paths:
            sizes = [int(np.prod(p.free_shape, dtype=int)) for p in path.parameters]
            pieces = np.split(path.start, np.cumsum(sizes)[:-1]) if sizes else []
            for parameter, piece in zip(path.parameters, pieces, strict=True):
                parts.setdefault(parameter.part, (parameter, piece))
        self.parameters = [parameter for parameter, _ in parts.values()]
        self.start = np.concatenate([np.zeros(0), *(piece for _, piece in parts.values())])
        ends = np.cumsum([0, *(len(piece) for _, piece in parts.values())])
        self.places = {part: np.arange(*ends[i : i + 2]) for i, part in enumerate(parts)}
        self._own = [
            np.concatenate([np.zeros(0, int), *(self.places[p.part] for p in path.parameters)])
            for path, _, _ in paths
        ]

    def values(self, at: np.ndarray) -> dict[Part, np.ndarray]:
        """The parameters in their own spaces."""
        return {
            p.part: np.asarray(p.bijection(jnp.asarray(at[self.places[p.part]]).reshape(p.free_shape)))
            for p in self.parameters
        }

    def look(self, at: np.ndarray, half: Half = "all") -> Point:
        """What some of the draws tell of the evidence there."""
        befores, afters, slopes = self._looked(at, half)
        before, after = np.concatenate(befores), np.concatenate(afters)
        total = _logsumexp(after)
        slope = np.zeros(len(at))
        for level, own, part in slopes:
            with np.errstate(all="ignore"):
                np.add.at(slope, own, np.exp(level - total) * part)
        value = total - _logsumexp(before)
        with np.errstate(all="ignore"):  # far from where the draws are
            ratios = [np.exp(a - b - value) for a, b in zip(afters, befores, strict=True)]
            share = _effective(after) / _effective(before)
            return Point(value, slope, share, _error(befores, ratios))

    def curvature(self, part: Part) -> tuple[float, float]:
        """Of the evidence where draws are from, over the evidence, as a parameter moves; and its error."""
        direction = np.zeros(len(self.start))
        direction[self.places[part]] = _STEP / np.sqrt(max(1, len(self.places[part])))
        befores, ups, _ = self._looked(self.start + direction, "all")
        _, downs, _ = self._looked(self.start - direction, "all")
        bent = [
            (np.exp(up - before) + np.exp(down - before) - 2) / _STEP**2
            for before, up, down in zip(befores, ups, downs, strict=True)
        ]
        mean = sum(float(np.exp(before) @ one) for before, one in zip(befores, bent, strict=True))
        return mean, _error(befores, bent)

    def _looked(self, at: np.ndarray, half: Half) -> Any:
        """For each path, log-weights where draws are from, and here; for each block, their slope."""
        befores, afters, slopes = [], [], []
        for (path, blocks, weight), own in zip(self._paths, self._own, strict=True):
            chosen = [block.log_weights[_ROWS[half]] for block in blocks]
            level = np.log(weight) - _logsumexp(np.concatenate(chosen))
            found = []
            for block in blocks:
                log_weights = np.full(len(block.log_weights), -np.inf)
                log_weights[_ROWS[half]] = block.log_weights[_ROWS[half]] + level
                after, slope = path.look(at[own], block, log_weights)
                found.append(after[_ROWS[half]])
                slopes.append((_logsumexp(after), own, slope))
            usable = np.isfinite(np.concatenate(chosen))
            befores.append(np.concatenate(chosen)[usable] + level)
            afters.append(np.concatenate(found)[usable])
        return befores, afters, slopes


def _logsumexp(logs: np.ndarray) -> float:
    return float(np.logaddexp.reduce(logs))


def _effective(log_weights: np.ndarray) -> float:
    """How many equally weighted draws these are worth."""
    return float(np.exp(2 * _logsumexp(log_weights) - _logsumexp(2 * log_weights)))


def _error(log_weights: Sequence[np.ndarray], values: Sequence[np.ndarray]) -> float:
    """The standard error of a weighted sum, in which the weights of paths are known."""
    variance = 0.0
    for logs, own in zip(log_weights, values, strict=True):
        weights = np.exp(logs)
        variance += float(np.sum((weights * (own - weights @ own / weights.sum())) ** 2))
    return float(np.sqrt(variance))


def _log_densities(compiled: Compiled, rows: SiteRows) -> np.ndarray:
    """Of draws of a guide, in the coordinates of the program."""
    code = compiled.density
    assert code is not None

    def build() -> Any:
        density = code.build()
        return lambda columns, fixed: over_rows(lambda *row: density(row, fixed)[0])(*columns)

    dtypes = {site.name: site.dtype for site in compiled.outline.sites}
    columns = tuple(jnp.asarray(rows[name], dtypes[name]) for name in compiled.free)
    return np.asarray(
        compiled.executables.call(("rows", code.key, len(columns[0])), build, columns, compiled.fixed)
    )


def _make_vectors(target: Target, _: np.ndarray) -> Any:
    formula = target.formula
    return lambda columns, arguments: over_rows(lambda *row: formula.unconstrain(row, arguments))(*columns)


def _make_density(target: Target, columns: np.ndarray) -> Any:
    """(parameters, vectors, arguments) -> log-densities of vectors, and in the coordinates of the program."""

    def densities(at: jax.Array, vectors: jax.Array, arguments: Any) -> tuple[jax.Array, jax.Array]:
        found = over_rows(lambda u: target.formula.density(u, arguments))(vectors.at[:, columns].set(at))
        return found.log_joint + found.log_det, found.log_joint

    return densities


def _make_slope(target: Target, columns: np.ndarray) -> Any:
    """(parameters, vectors, log-weights, arguments) -> log-weights here, and the slope of their logsumexp."""
    densities = _make_density(target, columns)

    def total(at: jax.Array, vectors: jax.Array, log_weights: jax.Array, arguments: Any) -> Any:
        here = log_weights + densities(at, vectors, arguments)[0]
        return jax.nn.logsumexp(here), here

    def looked(*given: Any) -> tuple[jax.Array, jax.Array]:
        slope, here = jax.grad(total, has_aux=True)(*given)
        return here, slope

    return looked
