"""What a posterior holds of one path: a way to draw from it, and its density."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import jax.numpy as jnp
import numpy as np

from pathmix.engine.code import Arrays, Code
from pathmix.engine.executables import Executables
from pathmix.engine.noise import noise_size, normals
from pathmix.errors import PathmixError, RejectionError
from pathmix.posterior.evidence import Particles
from pathmix.program.deterministics import deterministic_sites
from pathmix.program.outline import Outline
from pathmix.program.seeds import Seed
from pathmix.program.slp import StraightLineProgram
from pathmix.program.values import SiteRows, SiteValues
from pathmix.target.inert import Inert

BLOCK = 256  # draws that are made at once, at most: one executable for any number of draws


def unknown_density(_: SiteValues) -> float:
    """Of draws whose density was not written down with them."""
    raise PathmixError("The density of these draws could not be saved: ask the posterior that was.")


class Component(Protocol):
    """One path's share of a posterior. Draws and densities are those of the path alone, normalised."""

    @property
    def outline(self) -> Outline: ...

    @property
    def slp(self) -> StraightLineProgram | None:
        """The program along the path; None if it was left behind with the process that fitted it."""
        ...

    @property
    def inert(self) -> Inert:
        """Elements of sites whose drawn values mean nothing: they come from the prior."""
        ...

    def draw(self, seed: Seed, count: int) -> SiteRows:
        """Latent and deterministic sites, draws along the first axis."""
        ...

    def log_prob(self, values: SiteValues) -> float:
        """Log-density at one draw, in the coordinates of the program; NaN outside a site's support."""
        ...

    def deterministics(self, values: SiteRows) -> SiteRows:
        """The deterministic sites at latent values."""
        ...


@dataclass(frozen=True, eq=False)
class Compiled:
    """The functions of a path that a posterior needs, and what it knows besides.

    `outcomes` goes from noise or vectors to the free sites, the deterministic sites, and whether rows are
    inside of the path's region; `density` from the values of the free sites to a log-density, and
    `recompute` from those of all sites to the deterministic ones. Where sites were summed out, `backward`
    goes from the other sites and numbers between zero and one to values of these, and `share` from all sites
    to the log-probability of these, given the others.
    """

    outline: Outline
    free: tuple[str, ...]  # in the order of outcomes
    inert: Inert
    outcomes: Code
    density: Code | None  # None if it could not be written to the file that this comes from
    recompute: Code | None  # where something comes after the outcomes, and there are deterministic sites
    backward: Code | None
    share: Code | None
    fixed: Arrays  # data and parameters, as all three take them
    rows: int  # of a block
    executables: Executables

    def outcome(self, block: Any) -> tuple[SiteRows, np.ndarray]:
        """The sites of a block, and which rows are inside."""
        *columns, inside = map(np.asarray, self.outcomes(self.executables, (block,), self.fixed))
        free = dict(zip(self.free, columns, strict=False))
        pinned = dict(self.outline.recorded.pinned)
        found = {
            site.name: free[site.name]
            if site.name in free
            else np.repeat(np.asarray(pinned[site.name], site.dtype)[None], self.rows, axis=0)
            for site in self.outline.sites
            if site.name not in self.outline.recorded.summed
        }
        return found | dict(zip(self.outline.deterministics, columns[len(self.free) :], strict=True)), inside

    def log_density(self, values: SiteValues) -> float:
        if self.density is None:
            return unknown_density(values)
        dtypes = {site.name: site.dtype for site in self.outline.sites}
        row = tuple(jnp.asarray(values[name], dtypes[name]) for name in self.free)
        (found,) = self.density(self.executables, row, self.fixed)
        if self.share is None:
            return float(found)
        everything = tuple(jnp.asarray(values[site.name], site.dtype) for site in self.outline.sites)
        (share,) = self.share(self.executables, everything, self.fixed)
        return float(found) + float(share)

    def deterministics(self, values: SiteRows) -> SiteRows:
        """The deterministic sites at latent values."""
        if self.recompute is None:
            return {}
        columns = [np.asarray(values[site.name], site.dtype) for site in self.outline.sites]
        return dict(zip(self.outline.deterministics, self._in_blocks(self.recompute, columns), strict=True))

    def completed(self, seed: Seed, drawn: SiteRows, count: int) -> SiteRows:
        """Draws together with what was summed out, drawn given all else."""
        if self.backward is None:
            return drawn
        summed = [site for site in self.outline.sites if site.name in self.outline.recorded.summed]
        width = self.backward.example[-1].shape[-1]
        nothing = {site.name: np.zeros((count, *site.shape)) for site in summed}
        given = {**drawn, **nothing}
        columns = [np.asarray(given[site.name], site.dtype) for site in self.outline.sites]
        found = self._in_blocks(self.backward, [*columns, seed.generator().random((count, width))])
        whole = {**drawn, **{site.name: values for site, values in zip(summed, found, strict=True)}}
        return {**whole, **self.deterministics(whole)}

    def _in_blocks(self, function: Code, columns: Sequence[np.ndarray]) -> list[np.ndarray]:
        parts = []
        for start in range(0, len(columns[0]), self.rows):
            rows = np.arange(start, start + self.rows) % len(columns[0])
            block = tuple(jnp.asarray(column[rows]) for column in columns)
            parts.append(function(self.executables, block, self.fixed))
        return [np.concatenate(column)[: len(columns[0])] for column in zip(*parts, strict=True)]


@dataclass(frozen=True, eq=False)
class _OfOnePath:
    """Knows its functions when they are first asked for: most paths are never drawn from."""

    outline: Outline
    inert: Inert
    slp: StraightLineProgram | None
    make: Callable[[], Compiled]

    @cached_property
    def compiled(self) -> Compiled:
        return self.make()

    def deterministics(self, values: SiteRows) -> SiteRows:
        return self.compiled.deterministics(values)


@dataclass(frozen=True, eq=False)
class TruncatedGuide(_OfOnePath):
    """A trained guide, restricted to the path's region by rejection."""

    width: int  # standard normals that one draw takes
    label: str
    acceptance: float
    tries: int

    def draw(self, seed: Seed, count: int) -> SiteRows:
        """By rejection, with a bounded number of tries."""
        wanted = int(np.ceil(count / self.acceptance * 1.1)) if self.acceptance < 1 else count
        rows = self.compiled.rows
        parts: list[SiteRows] = []
        found = 0
        most = self.tries * -(-wanted // rows)
        for number in range(most):
            noise = normals(seed.child(number), noise_size(rows * self.width))
            values, inside = self.compiled.outcome(noise)
            parts.append({name: array[inside] for name, array in values.items()})
            found += int(inside.sum())
            if found >= count:
                drawn = {n: np.concatenate([part[n] for part in parts])[:count] for n in parts[0]}
                return self.compiled.completed(seed.child(1 << 20), drawn, count)
        raise RejectionError(
            f"The path {self.label!r} gave only {found} of {count} draws inside its region in "
            f"{most * rows} tries. Train it longer, or with more particles."
        )

    def log_prob(self, values: SiteValues) -> float:
        """In the coordinates of the program."""
        return self.compiled.log_density(values) - float(np.log(self.acceptance))


@dataclass(frozen=True, eq=False)
class ParticleDraws(_OfOnePath):
    """Weighted particles; their density is that of the path itself, over its evidence."""

    particles: Particles
    log_evidence: float

    def draw(self, seed: Seed, count: int) -> SiteRows:
        """A finite set is drawn from, so draws repeat."""
        weights = self.particles.weights / self.particles.weights.sum()
        size = self.compiled.rows
        chosen = seed.generator().choice(len(weights), size=-(-count // size) * size, p=weights)
        vectors = self.particles.vectors[chosen].reshape(-1, size, self.particles.vectors.shape[1])
        parts = [self.compiled.outcome(block)[0] for block in vectors]
        drawn = {name: np.concatenate([part[name] for part in parts])[:count] for name in parts[0]}
        return self.compiled.completed(seed.child(1 << 20), drawn, count)

    def log_prob(self, values: SiteValues) -> float:
        """In the coordinates of the program."""
        return self.compiled.log_density(values) - self.log_evidence


@dataclass(frozen=True, eq=False)
class WeightedDraws:
    """A finite set of weighted draws, with the density of the distribution that they stand for."""

    outline: Outline
    values: SiteRows
    weights: np.ndarray  # sum to one
    density: Callable[[SiteValues], float] = unknown_density
    inert: Inert = field(default_factory=dict)
    slp: StraightLineProgram | None = None

    def draw(self, seed: Seed, count: int) -> SiteRows:
        rows = seed.generator().choice(len(self.weights), size=count, p=self.weights)
        return {name: array[rows] for name, array in self.values.items()}

    def log_prob(self, values: SiteValues) -> float:
        return self.density(values)

    def deterministics(self, values: SiteRows) -> SiteRows:
        """As the program has them."""
        if self.slp is None:
            raise PathmixError("Masked elements of these draws need the program, which was not saved.")
        return deterministic_sites(self.slp, values)
