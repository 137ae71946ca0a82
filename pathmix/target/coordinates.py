"""The flat unconstrained vector of a straight-line program, and the values it stands for.

Sites whose bijection works element by element and depends on no other site are transformed
together, as one vector: compile time grows with the number of operations.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpyro.distributions.transforms import IndependentTransform

from pathmix.program.canonical import canonical
from pathmix.program.dependence import NOTHING, Sites
from pathmix.program.graph import Graph
from pathmix.program.identity import tree_identity
from pathmix.program.slp import BijectionTemplate, Site, StraightLineProgram
from pathmix.regions.region import Region
from pathmix.target.boxes import Box, make_box
from pathmix.target.inert import Inert


class MapArguments(NamedTuple):
    """The parameters of the bijections, segment by segment."""

    known: tuple[Any, ...]  # a Box, or the known parameters of a bijection
    supports: tuple[tuple[jax.Array, ...], ...]  # captured by the graphs of computed parameters


@dataclass(frozen=True, eq=False)
class Segment:
    """A part of the flat vector that one bijection maps to one site, or element by element to many."""

    sites: tuple[int, ...]
    elementwise: bool
    start: int
    stop: int
    shape: tuple[int, ...]  # before the bijection
    treedef: Any  # of the bijection; None for a box
    computed: tuple[bool, ...]  # which of its parameters depend on other sites
    support: Graph | None  # computes those
    event_dim: int = 0  # axes of one event after the bijection

    @property
    def structure(self) -> tuple[Any, ...]:
        support = None if self.support is None else self.support.structure
        layout = (self.sites, self.elementwise, self.start, self.stop, self.shape)
        bijection = None if self.treedef is None else tree_identity(self.treedef)
        return (*layout, bijection, self.computed, support)


@dataclass(frozen=True, eq=False)
class Coordinates:
    sites: tuple[Site, ...]  # the free ones, in the order of the target
    segments: tuple[Segment, ...]
    kept: tuple[bool, ...]  # which elements of the segments are in the vector; the others are inert

    @property
    def dim(self) -> int:
        return sum(self.kept)

    @cached_property
    def slices(self) -> tuple[tuple[int, int], ...]:
        """The part of the vector that belongs to each free site."""
        found = []
        for segment in self.segments:
            start = segment.start
            for index in segment.sites:
                stop = start + _size(self.sites[index]) if segment.elementwise else segment.stop
                found.append((sum(self.kept[:start]), sum(self.kept[:stop])))
                start = stop
        return tuple(found)

    @property
    def order(self) -> tuple[int, ...]:
        """The free sites in the order of the vector."""
        return tuple(index for segment in self.segments for index in segment.sites)

    def supporting(self, sites: Sites) -> Sites:
        """The free sites that the supports of some sites depend on."""
        free = frozenset(self.order)
        found = NOTHING
        for segment in self.segments:
            if segment.support is not None and sites & set(segment.sites):
                found |= segment.support.sites
        return found & free

    def constrain(self, u: jax.Array, arguments: MapArguments) -> tuple[list[jax.Array], jax.Array]:
        """The values of the free sites at a vector, and the log-determinant of the map."""
        values = [jnp.zeros(site.shape, site.dtype) for site in self.sites]
        log_det = jnp.zeros((), u.dtype)
        if not all(self.kept):
            u = jnp.zeros(len(self.kept), u.dtype).at[np.flatnonzero(self.kept)].set(u)
        for order, segment in enumerate(self.segments):
            piece = u[segment.start : segment.stop].reshape(segment.shape)
            bijection = _bijection(segment, order, arguments, values)
            mapped = bijection(piece)
            log_det = log_det + jnp.sum(self._counted(segment, bijection.log_abs_det_jacobian(piece, mapped)))
            start = 0
            for index in segment.sites:
                site = self.sites[index]
                stop = start + _size(site)
                value = mapped[start:stop].reshape(site.shape) if segment.elementwise else mapped
                values[index] = value.astype(site.dtype)
                start = stop
        return values, log_det

    def unconstrain(self, values: Sequence[jax.Array], arguments: MapArguments) -> jax.Array:
        """The vector that stands for the values of the free sites."""
        pieces = []
        for order, segment in enumerate(self.segments):
            bijection = _bijection(segment, order, arguments, values)
            if segment.elementwise:
                mapped = jnp.concatenate([jnp.ravel(values[index]) for index in segment.sites])
            else:
                mapped = values[segment.sites[0]]
            pieces.append(jnp.ravel(bijection.inv(mapped)))
        vector = jnp.concatenate(pieces) if pieces else jnp.zeros(0)
        return vector if all(self.kept) else vector[np.flatnonzero(self.kept)]

    def _counted(self, segment: Segment, log_dets: jax.Array) -> jax.Array:
        """The log-determinants of a segment without those of inert elements."""
        kept = np.array(self.kept[segment.start : segment.stop], bool).reshape(segment.shape)
        if kept.all():
            return log_dets
        return jnp.where(kept.all(axis=tuple(range(log_dets.ndim, kept.ndim))), log_dets, 0.0)


def make_coordinates(
    slp: StraightLineProgram, region: Region, draws: dict[str, np.ndarray], inert: Inert, order: Sequence[int]
) -> tuple[Coordinates, MapArguments]:
    """Coordinates for the free sites in an order; prior `draws` in the region set the scale of half-lines."""
    sites = [slp.sites[index] for index in order]
    segments, known = [], []

    def add(numbers: list[int], shape: tuple[int, ...], elementwise: bool, **rest: Any) -> None:
        start = segments[-1].stop if segments else 0
        stop = start + int(np.prod(shape, dtype=int))
        segments.append(Segment(tuple(numbers), elementwise, start, stop, shape, **rest))

    groups: dict[str, list[int]] = {}
    others: list[int] = []
    for number, site in enumerate(sites):
        if _size(site):
            kind = "box" if site.name in region.bounds else _elementwise_kind(site)
            others.append(number) if kind is None else groups.setdefault(kind, []).append(number)
    for kind, numbers in groups.items():  # they come first: they depend on nothing
        members = [sites[number] for number in numbers]
        size = sum(map(_size, members))
        if kind == "box":
            add(numbers, (size,), True, treedef=None, computed=(), support=None)
            known.append(_joint_box(region, draws, members))
        else:
            treedef, leaves = _joint_bijection(members)
            add(numbers, (size,), True, treedef=treedef, computed=(False,) * len(leaves), support=None)
            known.append(leaves)
    supports = {number: _support(slp, sites[number], order) for number in others}
    for number in _after_what_they_need(supports):
        template = _template(sites[number])
        bijection = _sketch(slp, sites[number])
        add(
            [number],
            tuple(bijection.inverse_shape(sites[number].shape)),
            False,
            event_dim=bijection.codomain.event_dim,
            treedef=template.treedef,
            computed=tuple(isinstance(leaf, int) for leaf in template.leaves),
            support=supports[number],
        )
        known.append(tuple(jnp.asarray(leaf) for leaf in template.leaves if not isinstance(leaf, int)))
    arguments = MapArguments(
        known=tuple(known),
        supports=tuple(() if segment.support is None else segment.support.consts for segment in segments),
    )
    kept = np.concatenate([np.zeros(0, bool), *(~_inert_in(sites, segment, inert) for segment in segments)])
    return Coordinates(tuple(sites), tuple(segments), tuple(kept.tolist())), arguments


def kinds(slp: StraightLineProgram, region: Region) -> list[str]:
    """What tells sites apart that a vector cannot treat alike."""
    return [_kind(site, region) for site in slp.sites]


def _kind(site: Site, region: Region) -> str:
    if site.pinned is not None or site.is_summed:
        return ""
    if site.name in region.bounds:
        ends = [(i.lower > -np.inf, i.upper < np.inf) for i in region.bounds[site.name].values()]
        return f"box {ends}"
    return _elementwise_kind(site) or f"{_template(site).treedef} {len(_template(site).slots)}"


def _support(slp: StraightLineProgram, site: Site, order: Sequence[int]) -> Graph | None:
    """Computes the parameters of a site's bijection that depend on other sites."""
    if not _template(site).slots:
        return None
    graph = slp.graph.outputs(_template(site).slots)
    return canonical(graph, slp.known, order=order).graph


def _after_what_they_need(supports: dict[int, Graph | None]) -> list[int]:
    """Sites in an order in which each comes after those that its support depends on."""
    found: list[int] = []
    left = dict(supports)
    while left:
        ready = next(n for n, graph in left.items() if graph is None or not graph.sites & left.keys())
        found.append(ready)
        del left[ready]
    return found


def _inert_in(sites: Sequence[Site], segment: Segment, inert: Inert) -> np.ndarray:
    """Which elements of a segment are inert; of an event, all or none are."""
    elements = [inert.get(sites[i].name, np.zeros(sites[i].shape, bool)).astype(bool) for i in segment.sites]
    if segment.elementwise:
        return np.concatenate([e.ravel() for e in elements])
    (site,) = elements
    events = site.all(axis=tuple(range(site.ndim - segment.event_dim, site.ndim)))
    return np.broadcast_to(_trailing(np.asarray(events), len(segment.shape)), segment.shape).ravel()


def _trailing(array: np.ndarray, rank: int) -> np.ndarray:
    """With axes of one element behind its own."""
    return array.reshape(array.shape + (1,) * (rank - array.ndim))


def _bijection(segment: Segment, order: int, arguments: MapArguments, values: Sequence[Any]) -> Any:
    known = arguments.known[order]
    if isinstance(known, Box):
        return known
    computed = iter(() if segment.support is None else segment.support(arguments.supports[order], values))
    given = iter(known)
    return segment.treedef.unflatten([next(computed if late else given) for late in segment.computed])


def _template(site: Site) -> BijectionTemplate:
    assert site.bijection is not None
    return site.bijection


def _plain(site: Site) -> Any:
    """The bijection of a site whose parameters are known, without the wrapper that counts event axes."""
    template = _template(site)
    bijection = template.treedef.unflatten([jnp.asarray(leaf) for leaf in template.leaves])
    while isinstance(bijection, IndependentTransform):
        bijection = bijection.base_transform
    return bijection


def _elementwise_kind(site: Site) -> str | None:
    """What a site shares with others of the same elementwise bijection; None if it has another."""
    if _template(site).slots:
        return None
    bijection = _plain(site)
    if bijection.domain.event_dim or bijection.codomain.event_dim:
        return None
    return str(jax.tree.structure(bijection))


def _joint_bijection(sites: Sequence[Site]) -> tuple[Any, tuple[jax.Array, ...]]:
    """One elementwise bijection for many sites: every parameter becomes a vector."""
    columns = []
    for site in sites:
        leaves = jax.tree.leaves(_plain(site))
        columns.append([np.broadcast_to(leaf, site.shape).ravel() for leaf in leaves])
    treedef = jax.tree.structure(_plain(sites[0]))
    return treedef, tuple(jnp.asarray(np.concatenate(rows), float) for rows in zip(*columns, strict=True))


def _joint_box(region: Region, draws: dict[str, np.ndarray], sites: Sequence[Site]) -> Box:
    lowers, uppers, columns = [], [], []
    for site in sites:
        assert site.bounds is not None
        lower, upper = (np.broadcast_to(b, site.shape).astype(float).ravel() for b in site.bounds)
        for position, interval in region.bounds[site.name].items():
            lower[position], upper[position] = interval.lower, interval.upper
        lowers.append(lower)
        uppers.append(upper)
        columns.append(draws[site.name].reshape(len(draws[site.name]), -1))
    return make_box(np.concatenate(lowers), np.concatenate(uppers), np.concatenate(columns, axis=1))


def _sketch(slp: StraightLineProgram, site: Site) -> Any:
    """The bijection of a site with stand-ins for parameters that depend on other sites."""
    template = _template(site)
    leaves = [
        np.zeros(slp.graph.output_shape(leaf)) if isinstance(leaf, int) else leaf for leaf in template.leaves
    ]
    return template.treedef.unflatten(leaves)


def _size(site: Site) -> int:
    return int(np.prod(site.shape, dtype=int))
