"""Strategies for expressions and distributions over the variables in scope. Simple ones come first."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from hypothesis import strategies as st

from tests.random_programs import grammar as g

Kind = Literal["real", "positive", "unit", "count", "simplex"]


@dataclass(frozen=True)
class Known:
    """A variable, and what may be done with it."""

    name: str
    kind: Kind
    size: int | g.Count | None = None  # of a vector
    below: int | None = None  # a count that is an integer in both libraries is less than this


@dataclass(frozen=True)
class Scope:
    known: tuple[Known, ...] = ()

    def add(self, known: Known) -> Scope:
        return replace(self, known=(*(k for k in self.known if k.name != known.name), known))

    def scalars(self, *kinds: Kind) -> list[Known]:
        return [k for k in self.known if k.size is None and (not kinds or k.kind in kinds)]

    @property
    def vectors(self) -> list[Known]:
        return [k for k in self.known if k.size is not None]


def numbers(*values: float) -> st.SearchStrategy[g.Number]:
    return st.sampled_from(values).map(g.Number)


REALS = numbers(0.0, 1.0, -1.0, 0.5, 1.7, -0.3)
POSITIVES = numbers(1.0, 2.0, 0.7, 1.3)  # none much narrower than the prior
UNITS = numbers(0.5, 0.3, 0.8)
BOUNDS = st.sampled_from([0.0, 1.0, -0.5, 0.4, 1.5])


def _variables(known: list[Known]) -> st.SearchStrategy[g.Expression]:
    return st.sampled_from([_as_float(k) for k in known])


def _as_float(known: Known) -> g.Expression:
    """Whole numbers cannot be parameters of most distributions in PyTorch."""
    variable = g.Variable(known.name)
    return variable if known.below is None else g.Binary("*", g.Number(1.0), variable)


def _elements(scope: Scope) -> list[g.Expression]:
    found = []
    for vector in scope.vectors:
        size = 1 if isinstance(vector.size, g.Count) else vector.size
        found += [g.Element(vector.name, index) for index in range(size)]
        found += [
            g.Element(vector.name, g.Variable(k.name))
            for k in scope.scalars("count")
            if k.below is not None and k.below <= size
        ]
        if vector.kind != "simplex":  # which sums up to one, but for rounding
            found.append(g.Total(vector.name))
    return found


def random_values(scope: Scope, depth: int = 1) -> st.SearchStrategy[g.Expression]:
    """Expressions with a variable in them; there must be one."""
    atoms = []
    if scope.scalars():
        atoms.append(_variables(scope.scalars()))
    if scope.vectors:
        atoms.append(st.sampled_from(_elements(scope)))
    if depth == 0:
        return st.one_of(atoms)
    inner = random_values(scope, depth - 1)
    return st.one_of(
        *atoms,
        st.builds(g.Binary, st.sampled_from("+*"), inner, st.one_of(REALS, inner)),
        st.builds(g.Apply, st.sampled_from(["tanh", "abs"]), inner),
    )


def reals(scope: Scope, size: int | g.Count | None = None) -> st.SearchStrategy[g.Expression]:
    """In a plate, also the vectors of its size."""
    fitting = [k for k in scope.vectors if k.size == size]
    ways: list[st.SearchStrategy[g.Expression]] = [REALS]
    ways += [random_values(scope)] if scope.known else []
    ways += [_variables(fitting)] if fitting else []
    return st.one_of(ways)


def positives(scope: Scope) -> st.SearchStrategy[g.Expression]:
    ways: list[st.SearchStrategy[g.Expression]] = [POSITIVES]
    if known := scope.scalars("positive", "unit", "count"):
        ways.append(_variables(known).map(partial(g.Binary, "+", g.Number(0.7))))
    if scope.known:
        inner = random_values(scope, 0)
        ways.append(inner.map(lambda e: g.Binary("+", g.Number(0.7), g.Apply("abs", e))))
        ways.append(inner.map(lambda e: g.Binary("+", g.Number(0.7), g.Apply("exp", g.Apply("tanh", e)))))
    return st.one_of(ways)


def units(scope: Scope) -> st.SearchStrategy[g.Expression]:
    ways: list[st.SearchStrategy[g.Expression]] = [UNITS]
    if known := scope.scalars("unit"):
        ways.append(_variables(known))
    if scope.known:
        ways.append(random_values(scope, 0).map(partial(g.Apply, "sigmoid")))
    return st.one_of(ways)


def law(family: str, *parameters: st.SearchStrategy) -> st.SearchStrategy[g.Distribution]:
    return st.tuples(*parameters).map(partial(g.Distribution, family))


def continuous(
    scope: Scope, size: int | g.Count | None = None
) -> st.SearchStrategy[tuple[g.Distribution, Kind]]:
    """Distributions of numbers in a plate of a size, or without one, and what kind of numbers they are."""
    real, positive = reals(scope, size), positives(scope)
    laws: list[tuple[st.SearchStrategy[g.Distribution], Kind]] = [
        (law("Normal", real, positive), "real"),
        (law("Uniform", numbers(0.0, -1.0), numbers(1.0, 2.5)), "real"),
        (law("Uniform", numbers(0.0, -0.5), positive), "real"),
        (law("Exponential", positive), "positive"),
        (law("HalfNormal", positive), "positive"),
        (law("Gamma", numbers(2.0, 1.0, 3.5), positive), "positive"),
        (law("LogNormal", real, numbers(0.5, 0.8)), "positive"),
        (law("Beta", numbers(1.0, 2.0), positive), "unit"),
        (law("StudentT", numbers(5.0, 3.5), real, positive), "real"),
    ]
    return st.one_of([one.map(lambda found, kind=kind: (found, kind)) for one, kind in laws])


SHARES = st.sampled_from([(0.5, 0.5), (0.3, 0.7), (0.2, 0.5, 0.3)])
CONCENTRATIONS = st.sampled_from([(1.0, 1.0), (2.0, 1.5), (1.0, 2.0, 3.0)])


def observations(
    scope: Scope, size: int | None, *, at_last: bool
) -> st.SearchStrategy[tuple[g.Distribution, float | tuple]]:
    """Distributions with values that they may well have given; at last, what was bound last has a say."""

    def values(*listed: float) -> st.SearchStrategy:
        one = st.sampled_from(listed)
        return one if size is None else st.tuples(*[one] * size)

    positive = positives(scope)
    reached = values(0.0, 1.0, -0.7, 1.9)
    if at_last:
        return st.tuples(law("Normal", random_values(Scope(scope.known[-2:])), positive), reached)
    return st.one_of(
        st.tuples(law("Normal", reals(scope, size), positive), reached),
        st.tuples(law("Bernoulli", units(scope)), values(1.0, 0.0)),
        st.tuples(law("Poisson", positive), values(0.0, 1.0, 3.0)),
    )
