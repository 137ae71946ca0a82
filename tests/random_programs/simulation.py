"""Runs programs in NumPy, many runs at a time: an implementation that shares nothing with pathmix.

Runs that decide alike stay together; where they differ, they part. A random value is an array with a row for
each run, a known one is a plain number, so whether Python looked at something random is plain to see.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from tests.random_programs import grammar as g
from tests.random_programs.evaluation import Value, Values, evaluate, truth
from tests.random_programs.families import Family, family

Draw = Callable[["Runs", str, Family], np.ndarray]
Pending = tuple[tuple["g.Statement | _Again", tuple[int, ...]], ...]  # with the rounds of the loops around


@dataclass(frozen=True)
class Runs:
    """Runs that decided alike so far."""

    rows: np.ndarray  # which of all runs
    log_prior: np.ndarray
    log_likelihood: np.ndarray
    variables: Values = field(default_factory=dict)
    sites: Mapping[str, np.ndarray] = field(default_factory=dict)  # in the order of drawing
    discrete: frozenset[str] = frozenset()
    decisions: tuple[tuple[str, bool | int], ...] = ()
    deterministics: Values = field(default_factory=dict)

    @staticmethod
    def start(count: int) -> Runs:
        return Runs(np.arange(count), np.zeros(count), np.zeros(count))

    def take(self, chosen: np.ndarray) -> Runs:
        def some(values: Values) -> dict[str, Value]:
            return {name: v[chosen] if isinstance(v, np.ndarray) else v for name, v in values.items()}

        return replace(
            self,
            rows=self.rows[chosen],
            log_prior=self.log_prior[chosen],
            log_likelihood=self.log_likelihood[chosen],
            variables=some(self.variables),
            sites=some(self.sites),
            deterministics=some(self.deterministics),
        )

    def bind(self, name: str, value: Value) -> Runs:
        return replace(self, variables={**self.variables, name: value})

    def split(self, value: Value, kind: str) -> Iterator[tuple[Runs, bool | int]]:
        """By what Python sees in a value; a known one is no decision."""
        if not isinstance(value, np.ndarray):
            yield self, bool(value) if kind == "bool" else int(value)
            return
        seen = value.astype(bool if kind == "bool" else int)
        for answer in np.unique(seen).tolist():
            some = self.take(seen == answer)
            yield replace(some, decisions=(*some.decisions, (kind, answer))), answer


@dataclass(frozen=True)
class _Again:
    """What is left of a `while` loop: look at the sum, and go on or not."""

    loop: g.While


def simulate(program: g.Program, count: int, draw: Draw) -> list[Runs]:
    """All runs, in groups with the same decisions."""
    finished: list[Runs] = []
    stack: list[tuple[Runs, Pending]] = [(Runs.start(count), _at(program.statements, ()))]
    while stack:
        runs, pending = stack.pop()
        if pending:
            (statement, rounds), *rest = pending
            stack += [(after, (*new, *rest)) for after, new in _step(runs, statement, rounds, draw)]
        else:
            finished.append(runs)
    return finished


def _at(statements: tuple[g.Statement, ...], rounds: tuple[int, ...]) -> Pending:
    return tuple((statement, rounds) for statement in statements)


def _block(block: g.Block, bind: g.Let, rounds: tuple[int, ...]) -> Pending:
    return _at((*block.statements, bind), rounds)


def _step(
    runs: Runs, statement: g.Statement | _Again, rounds: tuple[int, ...], draw: Draw
) -> Iterator[tuple[Runs, Pending]]:
    """What a statement does, and what it puts before the rest of the program."""
    address = "_".join([getattr(statement, "name", ""), *map(str, rounds)])
    match statement:
        case g.Let(name, value):
            yield runs.bind(name, evaluate(value, runs.variables)), ()
        case g.Deterministic(_, value):
            found = {**runs.deterministics, address: evaluate(value, runs.variables)}
            yield replace(runs, deterministics=found), ()
        case g.Sample(name, distribution, g.Count() as count):
            for some, number in _counted(runs, count):
                yield _sampled(some, name, address, distribution, (number,), draw), ()
        case g.Sample(name, distribution, plate):
            yield _sampled(runs, name, address, distribution, () if plate is None else (plate,), draw), ()
        case g.Observe(_, distribution, data):
            law = family(distribution, runs.variables, len(runs.rows), np.shape(data))
            log_density = law.log_prob(np.broadcast_to(data, (len(runs.rows), *np.shape(data))))
            yield replace(runs, log_likelihood=runs.log_likelihood + _per_run(log_density)), ()
        case g.If(_, g.Joined("and", left, right), _, _):
            inner = replace(statement, condition=right)
            yield runs, _at((replace(statement, condition=left, then=_only(inner)),), rounds)
        case g.If(_, g.Joined("or", left, right), _, _):
            inner = replace(statement, condition=right)
            yield runs, _at((replace(statement, condition=left, otherwise=_only(inner)),), rounds)
        case g.If(target, condition, then, otherwise):
            for some, answer in runs.split(truth(condition, runs.variables), "bool"):
                taken = then if answer else otherwise
                yield some, _block(taken, g.Let(target, taken.result), rounds)
        case g.For(target, count, body):
            for some, number in _counted(runs, count):
                unrolled = (_block(body, _add(target, body), (*rounds, i)) for i in range(number))
                yield some.bind(target, 0.0), sum(unrolled, ())
        case g.While(target):
            yield runs.bind(target, 0.0), ((_Again(statement), (*rounds, 0)),)
        case _Again(loop):
            *outer, done = rounds
            if done == loop.most:
                yield runs, ()
                return
            for some, goes_on in runs.split(runs.variables[loop.target] < loop.limit, "bool"):
                body = _block(loop.body, _add(loop.target, loop.body), rounds)
                yield some, (*body, (statement, (*outer, done + 1))) if goes_on else ()


def _only(inner: g.If) -> g.Block:
    """A block that is another branch on the same variable."""
    return g.Block((inner,), g.Variable(inner.target))


def _add(target: str, body: g.Block) -> g.Let:
    return g.Let(target, g.Binary("+", g.Variable(target), body.result))


def _counted(runs: Runs, count: g.Count) -> Iterator[tuple[Runs, int]]:
    if count.converted:
        return ((some, number + 1) for some, number in runs.split(runs.variables[count.variable], "int"))
    return runs.split(runs.variables[count.variable] + 1, "int")


def _sampled(
    runs: Runs, name: str, address: str, distribution: g.Distribution, shape: tuple[int, ...], draw: Draw
) -> Runs:
    law = family(distribution, runs.variables, len(runs.rows), shape)
    value = draw(runs, address, law)
    return replace(
        runs.bind(name, value),
        log_prior=runs.log_prior + _per_run(law.log_prob(value)),
        sites={**runs.sites, address: value},
        discrete=runs.discrete | ({address} if law.is_discrete else frozenset()),
    )


def _per_run(log_density: np.ndarray) -> np.ndarray:
    """The sum over a plate."""
    return log_density.reshape(len(log_density), -1).sum(axis=1)
