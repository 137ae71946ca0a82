"""A graph whose density is summed over discrete sites, and one that draws them, given all others."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pathmix.doors.jax import nameless
from pathmix.program.graph import Graph
from pathmix.program.slp import StraightLineProgram, Summation
from pathmix.summation.contract import Stack, Step, draw, eliminate
from pathmix.summation.plan import Group, Plan, Term


@dataclass(frozen=True, eq=False)
class Tables:
    """The terms of a density as tables over the values of discrete sites."""

    graph: Graph
    plan: Plan

    def densities(self, consts: Sequence[Any], inputs: Sequence[Any]) -> tuple[jax.Array, jax.Array]:
        """The log-prior and the log-likelihood of all terms that depend on discrete sites, summed over them.

        The prior is that of the other sites, the likelihood the ratio of their joint density to it.
        """
        tables = [self._table(term, consts, inputs) for term in self.plan.terms]
        prior, joint = jnp.zeros(()), jnp.zeros(())
        for term, table in zip(self.plan.terms, tables, strict=True):
            constant = np.flatnonzero(term.constant)
            if len(constant):
                plain = jnp.sum(table.reshape(-1, table.shape[-1])[0, constant])
                prior, joint = prior + plain if term.is_prior else prior, joint + plain
        for group in self.plan.groups:
            total, _ = eliminate(group, self._stacks(group, tables))
            joint = joint + jnp.sum(total)
            terms = [self.plan.terms[slot.term] for slot in group.slots]
            if not all(term.is_own for term in terms if term.is_prior):  # else the sum is one
                before, _ = eliminate(group, self._stacks(group, tables, prior_only=True))
                prior = prior + jnp.sum(before)
        return prior, joint - prior

    def drawn(self, consts: Sequence[Any], inputs: Sequence[Any], uniforms: jax.Array) -> list[jax.Array]:
        """Values of the discrete sites, given those of all others."""
        tables = [self._table(term, consts, inputs) for term in self.plan.terms]
        found = jnp.zeros(sum(site.size for site in self.plan.sites), int)
        for group in self.plan.groups:
            steps: list[Step] = eliminate(group, self._stacks(group, tables))[1]
            found = found.at[group.members].set(draw(group, steps, uniforms).T)
        parts, first = [], 0
        for site in self.plan.sites:
            part = found[first : first + site.size].reshape(site.shape) + site.low
            parts.append(part.astype(getattr(self.graph.inputs[site.input].aval, "dtype")))
            first += site.size
        return parts

    def _table(self, term: Term, consts: Sequence[Any], inputs: Sequence[Any]) -> jax.Array:
        """A term for all values of its axes; its elements are along the last axis."""
        counts = [self.plan.sites[axis.site].values for axis in term.axes]
        rows = np.arange(int(np.prod(counts)))
        values = np.stack(np.unravel_index(rows, counts), axis=-1) if counts else np.zeros((1, 0), int)
        given = {}
        for number, colours in term.colours.items():
            site = self.plan.sites[number]
            own = [place for place, axis in enumerate(term.axes) if axis.site == number]
            chosen = values[:, own][:, np.maximum(colours, 0)]
            chosen = np.where(colours < 0, 0, chosen) + site.low
            dtype = getattr(self.graph.inputs[site.input].aval, "dtype")
            given[site.input] = jnp.asarray(chosen.reshape(-1, *site.shape), dtype)
        part = _selected(self.graph, term.slot)

        def at(changed: Mapping[int, jax.Array]) -> jax.Array:
            row = [changed.get(number, value) for number, value in enumerate(inputs)]
            return jnp.ravel(part(consts, row))

        return jax.vmap(at)(given).reshape(*counts, -1)

    def _stacks(self, group: Group, tables: Sequence[jax.Array], *, prior_only: bool = False) -> list[Stack]:
        alike: dict[tuple[int, tuple[int, ...]], list[int]] = {}
        for place, slot in enumerate(group.slots):
            if not prior_only or self.plan.terms[slot.term].is_prior:
                alike.setdefault((slot.term, slot.axes), []).append(place)
        stacks = []
        for (number, axes), places in alike.items():
            last = len(self.plan.terms[number].axes)
            others = [axis for axis in range(last) if axis not in axes]
            table = jnp.transpose(tables[number], [*others, *axes, last])[(0,) * len(others)]
            rows = jnp.moveaxis(table[..., group.elements[:, places]], -1, 0)
            stacks.append(Stack(tuple(group.slots[place].variables for place in places), rows))
        return stacks


def drawing(summation: Summation) -> Graph:
    """Takes all sites, and as many numbers between zero and one as there are elements to draw."""
    tables = Tables(summation.before, summation.plan)

    def drawn(consts: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
        return tables.drawn(consts, inputs[:-1], inputs[-1])

    return made(drawn, summation.before, [jax.ShapeDtypeStruct((width(summation),), jnp.result_type(float))])


def share(slp: StraightLineProgram, summation: Summation) -> Graph:
    """The log-probability of what was summed out, given all else."""
    whole = slp.graph.outputs([summation.joint, slp.LOG_PRIOR, slp.LOG_LIKELIHOOD])

    def log_share(consts: Any, inputs: Any) -> list[Any]:
        joint, log_prior, log_likelihood = whole(consts, inputs)
        return [joint - log_prior - log_likelihood]

    return made(log_share, whole)


def width(summation: Summation) -> int:
    """Elements of all sites that were summed out."""
    return sum(site.size for site in summation.plan.sites)


def _selected(graph: Graph, slot: int) -> Callable[[Sequence[Any], Sequence[Any]], Any]:
    """One output of a graph, as a function of all that it captured, and of its inputs."""
    part = graph.behind([slot])
    return lambda consts, inputs: part(consts, inputs)[0]


def made(
    function: Callable[[Sequence[Any], Sequence[Any]], list[Any]], graph: Graph, more: Sequence[Any] = ()
) -> Graph:
    """The graph of a function of what another one captured, and of its inputs and more."""
    count = len(graph.consts)
    inputs = [jax.ShapeDtypeStruct(_aval(var).shape, _aval(var).dtype) for var in graph.inputs]
    consts = [jax.ShapeDtypeStruct(const.shape, const.dtype) for const in graph.consts]
    closed = jax.make_jaxpr(lambda *given: function(given[:count], given[count:]))(*consts, *inputs, *more)
    jaxpr = closed.jaxpr.replace(
        constvars=[],
        invars=[*closed.jaxpr.constvars, *closed.jaxpr.invars],
        debug_info=nameless(closed.jaxpr),
    )
    return Graph(jaxpr, (*map(jnp.asarray, closed.consts), *graph.consts))


def _aval(var: Any) -> Any:
    return var.aval
