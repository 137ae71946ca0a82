"""One known path of a program, with compiled functions of rows.

Rows are worked on one after another, as many as there are: draws of one guide are spread over the
paths unevenly, and a batch of fixed size would mostly compute what nobody asked for.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pathmix.engine.executables import Executables
from pathmix.errors import UnsupportedSiteError
from pathmix.program.slp import StraightLineProgram
from pathmix.program.values import SiteRows
from pathmix.regions.region import Region, read_region
from pathmix.target.target import Target, make_target

_BLOCK = 64  # rows that one compiled call can take
# Rows of a path after which it is compiled, if draws of a guide found it: most of these never come again.
_ENOUGH_ROWS = 8

RowFunction = Callable[[Any, Any], Any]  # (row, arguments) -> results


class Evaluated(NamedTuple):
    """Rows of values on a path."""

    log_joint: np.ndarray
    inside: np.ndarray  # whether every condition of the path holds
    deterministics: SiteRows


@dataclass(frozen=True, eq=False)
class KnownPath:
    """A path whose sites have the bijections of their whole supports; its conditions are checked by row."""

    target: Target
    region: Region  # as SDVI sees it, for labels
    prior_mass: float
    executables: Executables
    discovered: bool  # by prior runs; else by a draw of a guide
    _asked: Counter[str] = field(default_factory=Counter, init=False)  # rows so far, by function

    @property
    def slp(self) -> StraightLineProgram:
        return self.target.slp

    def density(self, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """log gamma as a density of unconstrained vectors, and which of them follow the path."""

        def one(row: jax.Array, arguments: Any) -> Any:
            found = self.target.formula.density(row, arguments)
            return found.log_joint + found.log_det, found.inside

        return self._rows(("density", self.target.structure), one, u, len(u), self.target.arguments)

    def evaluate(self, values: SiteRows, count: int) -> Evaluated:
        """log gamma in the coordinates of the program, and what comes with it."""
        graphs, live = self.target.graphs, len(self.target.region.live)

        def one(row: Any, arguments: Any) -> Any:
            given, consts = arguments
            log_prior, log_likelihood, *conditions = graphs.density(given.density, row)
            others = [jnp.asarray(value) for value in self.target.site_graph(consts, row)[live:]]
            return log_prior + log_likelihood, jnp.all(jnp.array([True, *conditions])), others

        columns = tuple(self.target.columns(values))
        key = ("evaluate", self.target.site_structure)
        arguments = (self.target.arguments, self.target.site_graph.consts)
        log_joint, inside, others = self._rows(key, one, columns, count, arguments)
        names = [name for name, _ in self.slp.deterministics]
        return Evaluated(log_joint, inside, dict(zip(names, others, strict=True)))

    def constrain(self, u: np.ndarray) -> tuple[SiteRows, np.ndarray]:
        """The values of all latent sites at unconstrained vectors, and the log-determinants."""
        key, arguments = ("constrain", self._map_structure), self.target.arguments.map
        values, log_det = self._rows(key, self.target.coordinates.constrain, u, len(u), arguments)
        free = {site.name: value for site, value in zip(self.target.sites, values, strict=True)}
        pinned = {
            s.name: np.repeat(s.pinned[None], len(u), axis=0) for s in self.slp.sites if s.pinned is not None
        }
        return {site.name: {**free, **pinned}[site.name] for site in self.slp.sites}, log_det

    def unconstrain(self, values: SiteRows, count: int) -> tuple[np.ndarray, np.ndarray]:
        """The unconstrained vectors of values, and the log-determinants there."""
        coordinates = self.target.coordinates

        def one(row: Any, arguments: Any) -> Any:
            u = coordinates.unconstrain(row, arguments)
            return u, coordinates.constrain(u, arguments)[1]

        columns = tuple(self.target.columns(values))
        key, arguments = ("unconstrain", self._map_structure), self.target.arguments.map
        return self._rows(key, one, columns, count, arguments)

    @cached_property
    def _map_structure(self) -> Any:
        """Equal for paths that share the map from unconstrained vectors to values."""
        coordinates, arguments = self.target.coordinates, self.target.arguments.map
        sites = tuple((site.shape, str(site.dtype)) for site in self.target.sites)
        blocks = tuple(block.structure for block in coordinates.segments)
        return sites, blocks, jax.tree.structure(arguments)

    def _rows(self, key: Any, function: RowFunction, rows: Any, count: int, arguments: Any) -> Any:
        """A function of rows, compiled for blocks of one size that need not be full."""
        if self._is_rare(key, count):
            return _one_by_one(function, rows, count, arguments)
        parts = []
        for start in range(0, max(count, 1), _BLOCK):
            size, part = min(count - start, _BLOCK), slice(start, start + _BLOCK)
            block = jax.tree.map(partial(_filled_up, part), rows)
            result = self.executables.call(key, lambda: _first_rows(function), block, size, arguments)
            self._compiled.add(key)
            parts.append(jax.tree.map(partial(_head, size), result))
        return parts[0] if len(parts) == 1 else jax.tree.map(lambda *blocks: np.concatenate(blocks), *parts)

    @property
    def _compiled(self) -> set[Any]:
        """By any path."""
        return self.executables.once("compiled", set)

    def _is_rare(self, key: Any, count: int) -> bool:
        if self.discovered or count == 0 or key in self._compiled:
            return False
        self._asked[key[0]] += count
        return self._asked[key[0]] <= _ENOUGH_ROWS


def known_path(
    slp: StraightLineProgram,
    draws: SiteRows,
    prior_mass: float,
    executables: Executables,
    *,
    discovered: bool = True,
) -> KnownPath:
    """Prepare a path, given draws on it; nothing is compiled before it is needed."""
    target = make_target(slp, read_region(slp, draws, boxes=False), draws)
    for name in target.inert:
        raise UnsupportedSiteError(
            f"The site {name!r} has elements under a mask that never reach the density. A guide for each "
            "address cannot leave them out; SDVI and DCC can."
        )
    return KnownPath(target, read_region(slp, draws), prior_mass, executables, discovered)


def _one_by_one(function: RowFunction, rows: Any, count: int, arguments: Any) -> Any:
    def one(number: int) -> Any:
        return function(jax.tree.map(lambda column: column[number], rows), arguments)

    return jax.tree.map(lambda *values: np.stack(values), *map(one, range(count)))


def _first_rows(function: RowFunction) -> Callable[..., Any]:
    def compilable(rows: Any, count: Any, arguments: Any) -> Any:
        def one(number: Any) -> Any:
            return function(jax.tree.map(lambda column: column[number], rows), arguments)

        def body(number: Any, done: Any) -> Any:
            return jax.tree.map(lambda column, value: column.at[number].set(value), done, one(number))

        shapes = jax.eval_shape(one, 0)
        empty = jax.tree.map(lambda result: jnp.zeros((_BLOCK, *result.shape), result.dtype), shapes)
        return jax.lax.fori_loop(0, count, body, empty)

    return compilable


def _filled_up(part: slice, column: np.ndarray) -> np.ndarray:
    found = column[part]
    full = np.zeros((_BLOCK, *column.shape[1:]), column.dtype)
    full[: len(found)] = found
    return full


def _head(size: int, column: jax.Array) -> np.ndarray:
    return np.asarray(column)[:size]
