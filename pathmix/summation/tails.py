"""Where the values of a site without an upper end may be cut: beyond, neither prior nor data leave anything.

That is looked at for prior draws, and for all values of the other discrete sites, one site at a time: a rare
one may be what the data ask for. What the posterior of continuous sites makes of it is looked at in the end.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pathmix.program.slp import StraightLineProgram, TermOutput
from pathmix.program.values import SiteRows
from pathmix.summation.plan import SummedSite
from pathmix.summation.sets import Sets

_TAIL = 1e-24  # of the mass, that may be left out
_FIRST, _MOST = 32, 4_096  # values
_ROWS = 32  # of prior draws
_MOST_NUMBERS = 2**22
_FEW = 16  # values of another site

Depending = tuple[TermOutput, np.ndarray]  # a term, and what its elements depend on


class _Share(NamedTuple):
    """Elements of a term, and the elements of the site that they depend on."""

    slot: int
    is_own: bool
    elements: np.ndarray
    variables: np.ndarray


def values_of(
    slp: StraightLineProgram,
    site: SummedSite,
    others: Sequence[SummedSite],
    terms: Sequence[Depending],
    first: int,
    sets: Sets,
    draws: SiteRows,
) -> int | None:
    """How many values it takes; None if too many. `first` is the number of the site's first variable."""
    shares = [share for term in terms if (share := _share(site, *term, first, sets)) is not None]
    elements = sum(len(share.elements) for share in shares)
    count = _FIRST
    while count <= _MOST:
        rows = max(1, min(_ROWS, _MOST_NUMBERS // (count * max(elements, 1))))
        left = np.zeros(count)
        for given in _settings(slp, others, draws, rows):
            left = np.maximum(left, _left(slp, site, shares, given, count))
        if left[-1] < _TAIL * _TAIL:  # then there is as good as nothing beyond
            return int(np.argmax(left < _TAIL))
        count *= 4
    return None


def _share(site: SummedSite, term: TermOutput, depends: np.ndarray, first: int, sets: Sets) -> _Share | None:
    pairs = [
        (element, variable - first)
        for element, number in enumerate(depends.ravel().tolist())
        for variable in sets.members(number)
        if first <= variable < first + site.size
    ]
    if not pairs:
        return None
    elements, variables = np.array(pairs).T
    return _Share(term.slot, term.is_own and term.name == site.name, elements, variables)


def _settings(
    slp: StraightLineProgram, others: Sequence[SummedSite], draws: SiteRows, rows: int
) -> Iterator[list[np.ndarray]]:
    """Values of all sites, in rows: as drawn, and with each value of each of the other discrete sites."""
    drawn = [np.asarray(draws[one.name][:rows], one.dtype) for one in slp.sites]
    yield drawn
    for other in others:
        for value in range(min(other.values, _FEW)):
            same = np.full_like(drawn[other.input], other.low + value)
            yield [same if number == other.input else column for number, column in enumerate(drawn)]


def _left(
    slp: StraightLineProgram,
    site: SummedSite,
    shares: Sequence[_Share],
    given: Sequence[np.ndarray],
    count: int,
) -> np.ndarray:
    """For each value, the share of the mass from there on, at the row and the element where it is largest."""
    graph = slp.graph.outputs([share.slot for share in shares])

    def terms(value: jax.Array, *row: jax.Array) -> list[jax.Array]:
        values = [jnp.full_like(r, value) if i == site.input else r for i, r in enumerate(row)]
        return [jnp.ravel(term) for term in graph(graph.consts, values)]

    over_rows = jax.vmap(terms, (None, *(0 for _ in given)))
    found = jax.jit(jax.vmap(over_rows, (0, *(None for _ in given))))(
        site.low + jnp.arange(count), *map(jnp.asarray, given)
    )
    where: Any
    joint, prior = (np.zeros((count, len(given[0]), site.size)) for _ in range(2))
    for share, logs in zip(shares, found, strict=True):
        part, where = np.asarray(logs)[..., share.elements], (..., share.variables)
        np.add.at(joint, where, part)
        if share.is_own:
            np.add.at(prior, where, part)
    return np.maximum(_from_there_on(joint), _from_there_on(prior))


def _from_there_on(logs: np.ndarray) -> np.ndarray:
    logs = np.where(np.isnan(logs), -np.inf, logs).reshape(len(logs), -1)
    top = np.max(logs, axis=0)
    mass = np.exp(logs - np.where(np.isfinite(top), top, 0.0))
    left = np.cumsum(mass[::-1], axis=0)[::-1] / np.maximum(mass.sum(axis=0), 1e-300)
    return np.max(np.where(np.isfinite(top), left, 1.0), axis=1)  # where nothing fits yet, all is to come
