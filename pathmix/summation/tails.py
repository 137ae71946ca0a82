"""Where the values of a site without an upper end may be cut: beyond, neither prior nor data leave anything.

That is looked at for prior draws, and for all values of the other discrete sites that meet it: a rare one may
be what the data ask for. Nothing hides behind a gap: a site's probabilities must add up to one, and densities
further out are looked at here and there. What continuous sites make of it a posteriori is seen in the end.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pathmix.program.slp import StraightLineProgram, TermOutput
from pathmix.program.values import SiteRows
from pathmix.summation.others import Near, Others, moved_together, others
from pathmix.summation.plan import SummedSite
from pathmix.summation.sets import Sets

_TAIL = 1e-24  # of the mass, that may be left out
_FIRST, MOST_VALUES = 64, 4_096
_ROWS = 2, 32  # of prior draws, for each setting of the others
_FAR, _STEP = 2**20, 1.05  # until where it is looked beyond a window, and how far apart
_CLOSER = 1.0005  # steps, where a prior does not quite add up to one
_ROUNDING = 1e5  # epsilons, by which log Γ of large counts may be off
_SERIES = 1e-5  # by which JAX's log B is off, in double precision too
_AT_ONCE = 64  # values
_MOST_NUMBERS = 2**21  # at once
_MOST_TRIED = 2**25  # elements of the density, for one prior draw
_MOST_PARTS = 16

Depending = tuple[TermOutput, np.ndarray]  # a term, and what its elements depend on


class Cut(NamedTuple):
    values: int
    is_whole: bool  # all that meets the site was tried


class NoEndError(Exception):
    """Why there is no place to cut, in words."""


class _Share(NamedTuple):
    """Elements of a term, and the elements of the site that they depend on."""

    slot: int
    is_own: bool
    adds_up: bool  # to one, over the values of the site
    elements: np.ndarray
    variables: np.ndarray


class _Look(NamedTuple):
    """What is evaluated, moving some elements of the site, and with which values of others."""

    shares: Sequence[_Share]
    moved: np.ndarray
    others: Others
    settings: np.ndarray


def values_of(
    slp: StraightLineProgram,
    place: int,
    sites: Sequence[SummedSite],
    terms: Sequence[Depending],
    sets: Sets,
    draws: SiteRows,
) -> Cut:
    """How many values the site at this place takes. An error if there are too many."""
    site, first = sites[place], sum(one.size for one in sites[:place])
    shares = [share for term in terms if (share := _share(site, *term, first, sets)) is not None]
    own_terms = [term for term in terms if term[0].is_own and term[0].name == site.name]
    looks, is_whole = _looks(place, sites, shares, _near(site, first, terms, sets),
                             _near(site, first, own_terms, sets))  # fmt: skip
    drawn = int(np.max(draws[site.name], initial=site.low)) - site.low + 1
    if drawn > MOST_VALUES:
        raise NoEndError(f"prior draws of it go up to {drawn + site.low - 1:,}, and a sum has at most "
                         f"{MOST_VALUES:,} values")  # fmt: skip
    evaluations = [_Evaluation(slp, site, look, draws) for look in looks]
    count = _FIRST
    while True:
        if count >= drawn:
            left, possible = np.zeros(count), np.zeros(site.size, bool)
            for evaluation in evaluations:
                evaluation.look_beyond(count, left, possible)
            if possible.all() and left[-1] < _TAIL * _TAIL:  # then there is as good as nothing beyond
                return Cut(max(int(np.argmax(left < _TAIL)), drawn), is_whole)
            if count == MOST_VALUES:
                break
        count = min(4 * count, MOST_VALUES)
    last = f"{site.low + MOST_VALUES - 1:,}"
    raise NoEndError(
        f"at some prior draws, or values of other discrete sites, it still has mass beyond {last}"
        if possible.all()
        else f"at the prior draws that were tried, no value up to {last} makes the data possible"
    )


def _share(site: SummedSite, term: TermOutput, depends: np.ndarray, first: int, sets: Sets) -> _Share | None:
    pairs = np.array(
        [
            (element, variable - first)
            for element, number in enumerate(depends.ravel().tolist())
            for variable in sets.members(number)
            if first <= variable < first + site.size
        ],
        int,
    ).reshape(-1, 2)
    if not len(pairs):
        return None
    is_own = term.is_own and term.name == site.name
    by_element = is_own and depends.size == site.size
    elements, variables = (pairs[pairs[:, 0] == pairs[:, 1]] if by_element else pairs).T
    return _Share(term.slot, is_own, by_element, elements, variables)


def _near(site: SummedSite, first: int, terms: Sequence[Depending], sets: Sets) -> Near:
    near: Near = {variable: set() for variable in range(first, first + site.size)}
    for _, depends in terms:
        for number in np.unique(depends).tolist():
            members = sets.members(number)
            for variable in members & near.keys():
                near[variable] |= members - {variable}
    return near


def _looks(
    place: int, sites: Sequence[SummedSite], shares: Sequence[_Share], near: Near, above: Near
) -> tuple[list[_Look], bool]:
    """With all settings of the others together, or in turn; the prior always with all of them."""
    met, parents = others(place, sites, near), others(place, sites, above)
    parts = moved_together(place, sites, near)
    if len(parts) > _MOST_PARTS:
        raise NoEndError("too many of its elements meet in the density")
    elements = sum(len(share.elements) for share in shares) * 4 * _FIRST
    together = met.together() * elements <= _MOST_TRIED
    looks = [_Look(shares, part, met, met.settings(together=together)) for part in parts]
    if not together:
        if parents.together() * elements > _MOST_TRIED:
            raise NoEndError("its prior depends on too many values of other discrete sites")
        own = [share for share in shares if share.is_own]
        looks += [_Look(own, part, parents, parents.settings(together=True)) for part in parts]
    return looks, together and met.is_known


class _Evaluation:
    def __init__(self, slp: StraightLineProgram, site: SummedSite, look: _Look, draws: SiteRows) -> None:
        self.site, self.look = site, look
        self.shares = [_moved(share, look.moved) for share in look.shares]
        elements = max(sum(len(share.elements) for share in self.shares), site.size)
        fewest, most = _ROWS
        rows = 2 * _MOST_TRIED // (len(look.settings) * elements * 4 * _FIRST)
        is_set = {site.input, *(axis.input for axis in look.others.axes if np.all(look.settings >= 0))}
        if not any(
            np.any(draws[s.name] != draws[s.name][:1]) for i, s in enumerate(slp.sites) if i not in is_set
        ):
            most = fewest = 1
        self.drawn = [np.asarray(draws[s.name][: min(max(rows, fewest), most)], s.dtype) for s in slp.sites]
        self.batch = max(1, min(self.rows, _MOST_NUMBERS // (MOST_VALUES * elements)))
        graph = slp.graph.outputs([share.slot for share in self.shares])
        self._consts = graph.consts
        moved = look.moved.reshape(site.shape)

        def terms(consts: Sequence[jax.Array], value: jax.Array, *row: jax.Array) -> list[jax.Array]:
            values = [jnp.where(moved, value.astype(r.dtype), r) if i == site.input else r
                      for i, r in enumerate(row)]  # fmt: skip
            return [jnp.ravel(term) for term in graph(consts, values)]

        nothing = [None] * len(self.drawn)
        over_rows = jax.vmap(terms, (None, None, *(0 for _ in self.drawn)))
        self._logs = jax.jit(jax.vmap(over_rows, (None, 0, *nothing)))

    @property
    def rows(self) -> int:
        return len(self.look.settings) * len(self.drawn[0])

    def look_beyond(self, count: int, left: np.ndarray, possible: np.ndarray) -> None:
        """Raise the share of the mass from each value on; note elements that some row makes possible."""
        lack = self._look(count, _STEP, left, possible)
        if lack > max(_SERIES, _ROUNDING * self._epsilon):  # there must be more of the prior elsewhere
            left[:] = 1.0
        elif lack > _ROUNDING * self._epsilon:
            self._look(count, _CLOSER, left, possible)

    def _look(self, count: int, step: float, left: np.ndarray, possible: np.ndarray) -> float:
        """What the prior lacks to one."""
        further = np.unique((count * step ** np.arange(np.log(_FAR / count) / np.log(step))).astype(int))
        further = further[further >= count]
        gaps = np.log(np.diff(further, append=further[-1] * step))
        values = np.concatenate([np.arange(count), further])
        lack = 0.0
        for given in self._given():
            joint, prior = self._by_element(values, given)
            shares, fits = _from_there_on(joint, count, gaps)
            np.maximum(left, shares, out=left)
            possible[self.look.moved] |= fits
            shares, _ = _from_there_on(prior, count, gaps)
            np.maximum(left, shares, out=left)
            lack = max(lack, self._lack(prior[:count]))
        return lack

    def _given(self) -> Iterator[list[np.ndarray]]:
        """Values of all sites, in rows: as drawn, but for those of the others that are set."""
        for start in range(0, self.rows, self.batch):
            numbers = np.arange(start, start + self.batch) % self.rows
            setting, row = np.divmod(numbers, len(self.drawn[0]))
            given = [column[row] for column in self.drawn]
            for axis, chosen in zip(self.look.others.axes, self.look.settings[setting].T, strict=True):
                column = given[axis.input]
                by_row = (-1, *(1 for _ in axis.elements.shape))
                changed = axis.elements & (chosen >= 0).reshape(by_row)
                value = axis.values[chosen].astype(column.dtype).reshape(by_row)
                given[axis.input] = np.where(changed, value, column)
            yield given

    def _by_element(self, values: np.ndarray, given: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        padded = np.pad(values, (0, -len(values) % _AT_ONCE), mode="edge") + self.site.low
        rows = [jnp.asarray(column) for column in given]
        parts = [self._logs(self._consts, jnp.asarray(some), *rows) for some in padded.reshape(-1, _AT_ONCE)]
        found = [np.concatenate(column)[: len(values)] for column in zip(*parts, strict=True)]
        self._epsilon = max(float(np.finfo(logs.dtype).eps) for logs in found)
        joint, prior = (np.zeros((len(values), self.batch, self.site.size)) for _ in range(2))
        for share, logs in zip(self.shares, found, strict=True):
            part: Any = logs[..., share.elements]
            for whole in (joint, prior) if share.is_own else (joint,):
                if len(np.unique(share.variables)) == len(share.variables):
                    whole[..., share.variables] += part
                else:
                    where: Any = (..., share.variables)
                    np.add.at(whole, where, part)
        return joint[..., self.look.moved], prior[..., self.look.moved]

    def _lack(self, prior: np.ndarray) -> float:
        if not any(share.adds_up for share in self.shares):
            return 0.0
        mass = np.exp(np.where(np.isnan(prior), -np.inf, prior)).sum(axis=0)
        return float(np.max(1 - mass, where=mass > 0, initial=0.0))


def _moved(share: _Share, moved: np.ndarray) -> _Share:
    keep = moved[share.variables]
    return share._replace(elements=share.elements[keep], variables=share.variables[keep])


def _from_there_on(logs: np.ndarray, count: int, gaps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each value of a window the largest share of the mass from there on; and what is possible."""
    logs = np.where(np.isnan(logs), -np.inf, logs)
    logs[count:] += gaps[:, None, None]
    top = np.max(logs, axis=0)
    fits = np.isfinite(top)
    mass = np.exp(logs - np.where(fits, top, 0.0))
    left = np.cumsum(mass[::-1], axis=0)[::-1] / np.maximum(mass.sum(axis=0), 1e-300)
    shares = np.max(np.where(fits, left[:count], 0.0), axis=(1, 2), initial=0.0)
    return shares, fits.any(axis=0)
