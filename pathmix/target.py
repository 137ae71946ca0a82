"""The density of a straight-line program as a function of one flat unconstrained vector.

Everything that is not structure (data, pinned values, bounds) travels in `Arguments`, so that
targets with the same `structure` can run the same compiled code.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pathmix.boxes import Box, make_box
from pathmix.graph import Graph
from pathmix.region import Region
from pathmix.slp import Site, StraightLineProgram


class Arguments(NamedTuple):
    """What a target computes with."""

    density: tuple[jax.Array, ...]  # captured by each graph
    minibatch: tuple[jax.Array, ...]
    sites: tuple[jax.Array, ...]
    supports: tuple[tuple[jax.Array, ...], ...]
    pinned: dict[int, jax.Array]
    bijections: tuple[Any, ...]  # a Box, or the known parameters of a bijection, per free site


class Graphs(NamedTuple):
    """The parts of a straight-line program's graph, each with what it needs and no more."""

    density: Graph  # log-prior, log-likelihood, live conditions
    minibatch: Graph | None  # the same on a minibatch
    sites: Graph  # live conditions, deterministic sites
    supports: tuple[Graph | None, ...]  # a site's bijection, where earlier sites matter

    @property
    def structure(self) -> tuple[str | None, ...]:
        parts = (self.density, self.minibatch, self.sites, *self.supports)
        return tuple(None if graph is None else graph.structure for graph in parts)


class Density(NamedTuple):
    """One point's log-densities; log_det belongs to the map from the unconstrained vector."""

    log_prior: jax.Array
    log_likelihood: jax.Array
    log_det: jax.Array
    inside: jax.Array

    @property
    def log_joint(self) -> jax.Array:
        """log gamma, in the coordinates of the program."""
        return self.log_prior + self.log_likelihood


@dataclass(frozen=True, eq=False)
class Target:
    slp: StraightLineProgram
    region: Region
    graphs: Graphs
    arguments: Arguments
    slices: tuple[tuple[int, int], ...]  # of each free site in the flat vector
    shapes: tuple[tuple[int, ...], ...]  # of each free site before its bijection

    @property
    def dim(self) -> int:
        return self.slices[-1][1] if self.slices else 0

    @cached_property
    def structure(self) -> tuple[Any, ...]:
        """Equal for targets that can run the same compiled code."""
        return (
            self.graphs.structure,
            len(self.region.live),
            self.slices,
            self.shapes,
            tuple(name for name, _ in self.slp.deterministics),
            tuple(site.name for site in self.slp.sites),
            tuple(site.pinned is None for site in self.slp.sites),
            tuple(_bijection_structure(site) for site in self.slp.free),
            jax.tree.structure(self.arguments),
        )

    def constrain(self, u: jax.Array, arguments: Arguments) -> tuple[list[jax.Array], jax.Array]:
        """The graph's inputs at an unconstrained vector, and the log-determinant of the map."""
        inputs = [
            arguments.pinned[i] if site.pinned is not None else jnp.zeros(site.shape, site.dtype)
            for i, site in enumerate(self.slp.sites)
        ]
        log_det = jnp.zeros((), u.dtype)
        for order, (index, site) in enumerate(self._free):
            start, stop = self.slices[order]
            piece = u[start:stop].reshape(self.shapes[order])
            known = arguments.bijections[order]
            if isinstance(known, Box):
                value, change = known(piece), known.log_det(piece)
            else:
                bijection = self._bijection(site, order, known, arguments, inputs)
                value = bijection(piece)
                change = bijection.log_abs_det_jacobian(piece, value)
            inputs[index] = value.astype(site.dtype)
            log_det = log_det + jnp.sum(change)
        return inputs, log_det

    def unconstrain(self, values: Sequence[jax.Array], arguments: Arguments) -> jax.Array:
        """The unconstrained vector of the values of all latent sites."""
        pieces = []
        for order, (index, site) in enumerate(self._free):
            known = arguments.bijections[order]
            if isinstance(known, Box):
                piece = known.inverse(values[index])
            else:
                piece = self._bijection(site, order, known, arguments, list(values)).inv(values[index])
            pieces.append(jnp.ravel(piece))
        return jnp.concatenate(pieces) if pieces else jnp.zeros(0)

    def density(
        self, u: jax.Array, arguments: Arguments, indices: Sequence[jax.Array] | None = None
    ) -> Density:
        """The densities at an unconstrained vector; with `indices`, of a minibatch."""
        inputs, log_det = self.constrain(u, arguments)
        if indices is not None and self.graphs.minibatch is not None:
            outputs = self.graphs.minibatch(arguments.minibatch, [*inputs, *indices])
        else:
            outputs = self.graphs.density(arguments.density, inputs)
        log_prior, log_likelihood, *conditions = outputs
        return Density(log_prior, log_likelihood, log_det, _all(conditions))

    def log_joint(self, values: Sequence[jax.Array], arguments: Arguments) -> jax.Array:
        """log gamma at the values of all latent sites."""
        log_prior, log_likelihood, *_ = self.graphs.density(arguments.density, values)
        return log_prior + log_likelihood

    def values(self, u: jax.Array, arguments: Arguments) -> tuple[dict[str, jax.Array], jax.Array]:
        """Latent and deterministic sites by name, and whether the vector is inside the region."""
        inputs, _ = self.constrain(u, arguments)
        outputs = self.graphs.sites(arguments.sites, inputs)
        live = len(self.region.live)
        named = {site.name: value for site, value in zip(self.slp.sites, inputs, strict=True)}
        for (name, _), value in zip(self.slp.deterministics, outputs[live:], strict=True):
            named[name] = jnp.asarray(value)
        return named, _all(outputs[:live])

    @cached_property
    def _free(self) -> tuple[tuple[int, Site], ...]:
        return tuple((i, site) for i, site in enumerate(self.slp.sites) if site.pinned is None)

    def _bijection(self, site: Site, order: int, known: Any, arguments: Arguments, inputs: list[Any]) -> Any:
        assert site.bijection is not None
        support = self.graphs.supports[order]
        computed = iter(() if support is None else support(arguments.supports[order], inputs))
        given = iter(known)
        leaves = [next(computed) if isinstance(leaf, int) else next(given) for leaf in site.bijection.leaves]
        return site.bijection.treedef.unflatten(leaves)


def make_target(slp: StraightLineProgram, region: Region, draws: dict[str, np.ndarray]) -> Target:
    """The target of a path; prior `draws` inside it set the scale of half-lines."""
    slices, shapes, supports, bijections = [], [], [], []
    start = 0
    for site in slp.free:
        assert site.bijection is not None
        if site.name in region.boxes:
            shape = site.shape
            bijections.append(_box(site, region, draws[site.name]))
            supports.append(None)
        else:
            shape = _unconstrained_shape(slp, site)
            bijections.append(
                tuple(jnp.asarray(leaf) for leaf in site.bijection.leaves if not isinstance(leaf, int))
            )
            slots = site.bijection.slots
            supports.append(slp.graph.outputs(slots) if slots else None)
        stop = start + int(np.prod(shape))
        slices.append((start, stop))
        shapes.append(tuple(shape))
        start = stop
    live = [slp.FIRST_CONDITION + index for index in region.live]
    wanted = [slp.LOG_PRIOR, slp.LOG_LIKELIHOOD, *live]
    graphs = Graphs(
        density=slp.graph.outputs(wanted),
        minibatch=None if slp.minibatch is None else slp.minibatch.outputs(wanted),
        sites=slp.graph.outputs([*live, *(slot for _, slot in slp.deterministics)]),
        supports=tuple(supports),
    )
    arguments = Arguments(
        density=graphs.density.consts,
        minibatch=() if graphs.minibatch is None else graphs.minibatch.consts,
        sites=graphs.sites.consts,
        supports=tuple(() if graph is None else graph.consts for graph in supports),
        pinned={i: jnp.asarray(s.pinned) for i, s in enumerate(slp.sites) if s.pinned is not None},
        bijections=tuple(bijections),
    )
    return Target(slp, region, graphs, arguments, tuple(slices), tuple(shapes))


def _all(conditions: Sequence[jax.Array]) -> jax.Array:
    return jnp.all(jnp.stack(conditions)) if conditions else jnp.array(True)


def _bijection_structure(site: Site) -> tuple[Any, ...]:
    assert site.bijection is not None
    return str(site.bijection.treedef), tuple(isinstance(x, int) for x in site.bijection.leaves)


def _box(site: Site, region: Region, draws: np.ndarray) -> Box:
    assert site.bounds is not None
    lower, upper = (np.broadcast_to(b, site.shape).astype(float).copy() for b in site.bounds)
    for position, interval in region.boxes[site.name].items():
        at = np.unravel_index(position, site.shape)
        lower[at], upper[at] = interval.lower, interval.upper
    return make_box(lower, upper, draws)


def _unconstrained_shape(slp: StraightLineProgram, site: Site) -> tuple[int, ...]:
    assert site.bijection is not None
    leaves = [
        np.zeros(slp.graph.output_shape(leaf)) if isinstance(leaf, int) else leaf
        for leaf in site.bijection.leaves
    ]
    return tuple(site.bijection.treedef.unflatten(leaves).inverse_shape(site.shape))
