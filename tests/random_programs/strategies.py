"""Hypothesis strategies for programs, which shrink to few statements and simple numbers."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.random_programs import expressions as e
from tests.random_programs import grammar as g
from tests.random_programs.expressions import Known, Scope

Made = tuple[tuple[g.Statement, ...], Scope]
MOST_WAYS = 12  # through a program, about: every one is a path
MOST_LATENTS = 6
MOST_OBSERVATIONS = 4
DEPTH = 2


@st.composite
def programs(draw: st.DrawFn) -> g.Program:
    """Draws, then a branch or a loop, then perhaps more; the data depend on what came last."""
    maker = _Maker(draw)
    first, scope = maker.statements(Scope(), DEPTH, 0, 2)
    control, scope = maker.one_of(maker.controls(scope, 0) or ["branch"], scope, DEPTH, 0)
    more, scope = maker.statements(scope, DEPTH, 0, 2) if draw(st.booleans()) else ((), scope)
    last = [
        maker.observe(scope, at_last=at_last) for at_last in draw(st.sampled_from([[True], [True, False]]))
    ]
    return g.Program((*first, *control, *more, *last))


class _Maker:
    """Draws statements, and keeps account of names and of what the program may still cost."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.number = 0
        self.ways = float(MOST_WAYS)
        self.latents = MOST_LATENTS
        self.observed = 0

    def name(self, letter: str) -> str:
        self.number += 1
        return f"{letter}{self.number}"

    def statements(self, scope: Scope, depth: int, loops: int, most: int) -> Made:
        """One statement or more, the first of which draws."""
        found = []
        for number in range(self.draw(st.integers(1, most))):
            kinds = self.kinds(scope, depth, loops, is_first=not number)
            new, scope = self.one_of(kinds, scope, depth, loops)
            found += new
        return tuple(found), scope

    def one_of(self, kinds: list[str], scope: Scope, depth: int, loops: int) -> Made:
        return getattr(self, self.draw(st.sampled_from(kinds)))(scope, depth, loops)

    def kinds(self, scope: Scope, depth: int, loops: int, *, is_first: bool) -> list[str]:
        """What may come here. (A round of a loop is taken about twice, so what it costs is squared.)"""
        found = ["sample"]
        if self.latents > 0:
            found += ["plate", "dirichlet"]
            found += ["discrete"] if self.ways >= 2 ** (loops + 1) else []
        if is_first:
            return found
        found += ["deterministic"]
        found += ["observation"] if self.observed < MOST_OBSERVATIONS - 2 else []
        return found + (self.controls(scope, loops) if depth and self.latents > 0 else [])

    def controls(self, scope: Scope, loops: int) -> list[str]:
        if self.ways >= 2 ** (loops + 1):
            return ["branch", "loop", "walk"]
        return ["loop"] if scope.scalars("count") else []

    def spend(self, ways: float, loops: int) -> None:
        self.ways /= ways ** (loops + 1)

    def sample(self, scope: Scope, depth: int, loops: int) -> Made:
        self.latents -= 1 + loops
        distribution, kind = self.draw(e.continuous(scope))
        name = self.name("x")
        return (g.Sample(name, distribution),), scope.add(Known(name, kind))

    def plate(self, scope: Scope, depth: int, loops: int) -> Made:
        self.latents -= 2 + loops
        counts = [g.Count(k.name) for k in scope.scalars("count")]
        size = self.draw(st.sampled_from([2, 3, *counts]))
        distribution, kind = self.draw(e.continuous(scope, size))
        coins = isinstance(size, int) and self.ways >= 2 ** (size * (loops + 1)) and self.draw(st.booleans())
        if coins:
            self.spend(2**size, loops)
            distribution, kind = self.draw(e.law("Bernoulli", e.units(scope))), "count"
        name = self.name("v")
        return (g.Sample(name, distribution, size),), scope.add(Known(name, kind, size))

    def dirichlet(self, scope: Scope, depth: int, loops: int) -> Made:
        self.latents -= 2 + loops
        concentration = self.draw(e.CONCENTRATIONS)
        name = self.name("w")
        distribution = g.Distribution("Dirichlet", (concentration,))
        return (g.Sample(name, distribution),), scope.add(Known(name, "simplex", len(concentration)))

    def discrete(self, scope: Scope, depth: int, loops: int) -> Made:
        self.latents -= 1 + loops
        name = self.name("k")
        simplices = [k for k in scope.vectors if k.kind == "simplex"]
        below = None
        if self.draw(st.booleans()):
            vectors = [g.Variable(k.name) for k in simplices]
            shares = self.draw(st.one_of(e.SHARES, st.sampled_from(vectors)) if vectors else e.SHARES)
            sizes = {g.Variable(k.name): k.size for k in simplices}
            below = sizes[shares] if isinstance(shares, g.Variable) else len(shares)
            distribution = g.Distribution("Categorical", (shares,))
        else:
            distribution = self.draw(e.law("Bernoulli", e.units(scope)))
        self.spend(below or 2, loops)
        return (g.Sample(name, distribution),), scope.add(Known(name, "count", below=below))

    def deterministic(self, scope: Scope, depth: int, loops: int) -> Made:
        return (g.Deterministic(self.name("d"), self.draw(e.random_values(scope))),), scope

    def observation(self, scope: Scope, depth: int, loops: int) -> Made:
        return (self.observe(scope),), scope

    def observe(self, scope: Scope, *, at_last: bool = False) -> g.Observe:
        self.observed += 1
        size = self.draw(st.sampled_from([None, 2]))
        return g.Observe(self.name("y"), *self.draw(e.observations(scope, size, at_last=at_last)))

    def branch(self, scope: Scope, depth: int, loops: int) -> Made:
        self.spend(2, loops)
        condition = self.draw(self.conditions(scope))
        before = self.number
        then = self.block(scope, depth, loops)
        after, latents = self.number, self.latents
        if self.draw(st.booleans()):
            self.number = before  # both branches draw sites of the same names
        otherwise = self.block(scope, depth, loops)
        self.number, self.latents = max(after, self.number), min(latents, self.latents)
        name = self.name("r")
        return (g.If(name, condition, then, otherwise),), scope.add(Known(name, "real"))

    def block(self, scope: Scope, depth: int, loops: int, *, draws: bool = False) -> g.Block:
        """A block may consist of its result alone, if it need not draw."""
        if not draws and not self.draw(st.booleans()):
            return g.Block((), self.draw(e.reals(scope)))
        statements, inner = self.statements(scope, depth - 1, loops, 2)
        return g.Block(statements, self.draw(e.random_values(inner)))

    def conditions(self, scope: Scope) -> st.SearchStrategy[g.Condition]:
        anything = e.random_values(scope)
        compare = st.builds(g.Compare, anything, st.sampled_from(["<", ">", "<=", ">="]), e.BOUNDS)
        joined = st.builds(g.Joined, st.sampled_from(["and", "or", "&", "|"]), compare, compare)
        counts = [k.name for k in scope.scalars("count")]
        if not counts:
            return st.one_of(compare, joined)
        equal = st.builds(
            g.Compare, st.sampled_from(counts).map(g.Variable), st.just("=="), st.sampled_from([0.0, 1.0])
        )
        return st.one_of(st.sampled_from(counts).map(g.Truth), equal, compare, joined)

    def loop(self, scope: Scope, depth: int, loops: int) -> Made:
        """Over a count that is there, or over a new one: a count without bound must decide something."""
        drawn = ()
        known = self.draw(st.sampled_from([*scope.scalars("count"), *[None] * (self.ways >= 2)]))
        if known is None:
            self.spend(2, loops)
            known = Known(self.name("k"), "count")
            drawn = (g.Sample(known.name, self.draw(e.law("Poisson", e.numbers(0.5, 0.3)))),)
            scope = scope.add(known)
        count = g.Count(known.name, converted=known.below is None or self.draw(st.booleans()))
        body = self.block(scope, depth, loops + 1, draws=True)
        name = self.name("r")
        return (*drawn, g.For(name, count, body)), scope.add(Known(name, "real"))

    def walk(self, scope: Scope, depth: int, loops: int) -> Made:
        most = self.draw(st.integers(2, 3))
        self.spend(most, loops)
        limit = self.draw(st.sampled_from([1.0, 0.5, 2.0]))
        body = self.block(scope, depth, loops + 1, draws=True)
        name = self.name("r")
        return (g.While(name, limit, most, body),), scope.add(Known(name, "real"))
