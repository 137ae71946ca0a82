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

    consts: tuple[jax.Array, ...]
    minibatch_consts: tuple[jax.Array, ...]
    pinned: dict[int, jax.Array]
    bijections: tuple[Any, ...]  # a Box, or the known parameters of a bijection, per free site


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
    arguments: Arguments
    slices: tuple[tuple[int, int], ...]  # of each free site in the flat vector
    shapes: tuple[tuple[int, ...], ...]  # of each free site before its bijection
    supports: tuple[Graph | None, ...]  # computes a site's bijection, where earlier sites matter

    @property
    def dim(self) -> int:
        return self.slices[-1][1] if self.slices else 0

    @cached_property
    def structure(self) -> tuple[Any, ...]:
        slp = self.slp
        return (
            slp.graph.structure,
            None if slp.minibatch is None else slp.minibatch.structure,
            self.region.live,
            len(slp.path.decisions),
            tuple(len(position) for position in (slp.sites, slp.plates, slp.deterministics)),
            self.slices,
            self.shapes,
            tuple(
                None
                if site.bijection is None
                else (str(site.bijection.treedef), site.bijection.slots, type(known).__name__)
                for site, known in zip(slp.free, self.arguments.bijections, strict=True)
            ),
            tuple(site.pinned is None for site in slp.sites),
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
        if indices is not None and self.slp.minibatch is not None:
            outputs = self.slp.minibatch(arguments.minibatch_consts, [*inputs, *indices])
        else:
            outputs = self.slp.graph(arguments.consts, inputs)
        first = self.slp.FIRST_CONDITION
        conditions = [outputs[first + i] for i in self.region.live]
        return Density(
            outputs[self.slp.LOG_PRIOR],
            outputs[self.slp.LOG_LIKELIHOOD],
            log_det,
            jnp.all(jnp.stack(conditions)) if conditions else jnp.array(True),
        )

    def values(self, u: jax.Array, arguments: Arguments) -> tuple[dict[str, jax.Array], jax.Array]:
        """Latent and deterministic sites by name, and whether the vector is inside the region."""
        inputs, _ = self.constrain(u, arguments)
        outputs = self.slp.graph(arguments.consts, inputs)
        first = self.slp.FIRST_CONDITION
        conditions = [outputs[first + i] for i in self.region.live]
        named = {site.name: value for site, value in zip(self.slp.sites, inputs, strict=True)}
        named |= {name: jnp.asarray(outputs[slot]) for name, slot in self.slp.deterministics}
        return named, jnp.all(jnp.stack(conditions)) if conditions else jnp.array(True)

    @cached_property
    def _free(self) -> tuple[tuple[int, Site], ...]:
        return tuple((i, site) for i, site in enumerate(self.slp.sites) if site.pinned is None)

    def _bijection(
        self, site: Site, order: int, known: Any, arguments: Arguments, inputs: list[Any]
    ) -> Any:
        assert site.bijection is not None
        support = self.supports[order]
        computed = iter(() if support is None else support(arguments.consts, inputs))
        given = iter(known)
        leaves = [
            next(computed) if isinstance(leaf, int) else next(given) for leaf in site.bijection.leaves
        ]
        return site.bijection.treedef.unflatten(leaves)


def make_target(
    slp: StraightLineProgram, region: Region, draws: dict[str, np.ndarray]
) -> Target:
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
    arguments = Arguments(
        consts=slp.graph.consts,
        minibatch_consts=() if slp.minibatch is None else slp.minibatch.consts,
        pinned={i: jnp.asarray(s.pinned) for i, s in enumerate(slp.sites) if s.pinned is not None},
        bijections=tuple(bijections),
    )
    return Target(slp, region, arguments, tuple(slices), tuple(shapes), tuple(supports))


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
        np.zeros(slp.graph.jaxpr.outvars[leaf].aval.shape) if isinstance(leaf, int) else leaf
        for leaf in site.bijection.leaves
    ]
    return tuple(site.bijection.treedef.unflatten(leaves).inverse_shape(site.shape))
