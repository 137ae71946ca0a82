"""A traced pure function: a jaxpr, and the arrays it captured.

Captured arrays (the data, above all) are arguments of whatever is compiled from a graph, so two
graphs with the same structure share an executable.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pathmix.doors.jax import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, evaluate, literal, nameless, pruned
from pathmix.program.dependence import NOTHING, Sites, dependence, sites_of
from pathmix.program.identity import identity
from pathmix.program.interned import interned
from pathmix.program.slopes import Function, differentiable


@dataclass(frozen=True, eq=False)
class Graph:
    jaxpr: Jaxpr  # takes the captured arrays first, then the inputs
    consts: tuple[jax.Array, ...]
    known_structure: str | None = None

    @staticmethod
    def of(closed: ClosedJaxpr, given: Sequence[np.ndarray] = ()) -> "Graph":
        """The graph of a trace. Numbers in the program become captured arrays, and so do given inputs,
        the first ones."""
        eqns, numbers = _lift_literals(closed.jaxpr)
        jaxpr = closed.jaxpr.replace(
            constvars=[],
            invars=[*closed.jaxpr.constvars, *numbers, *closed.jaxpr.invars],
            eqns=eqns,
            debug_info=nameless(closed.jaxpr),
        )
        consts = tuple(interned(c if isinstance(c, jax.Array) else jnp.asarray(c)) for c in closed.consts)
        return Graph(jaxpr, (*consts, *map(_on_device, (*numbers.values(), *given))))

    @staticmethod
    def known(values: Sequence[np.ndarray], inputs: Sequence[jax.ShapeDtypeStruct]) -> "Graph":
        """A graph that gives these values, whatever its inputs."""
        shapes = [jax.ShapeDtypeStruct(value.shape, value.dtype) for value in values]
        return Graph(_giving(tuple(shapes), tuple(inputs)), tuple(map(_on_device, values)))

    def __call__(self, consts: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
        return evaluate(self.jaxpr, (), *consts, *inputs)

    @cached_property
    def without_numbers(self) -> "Graph":
        """The graph with the types of the arrays it captured, for those who are given the arrays."""
        return Graph(self.jaxpr, tuple(map(jax.typeof, self.consts)), self.structure)  # pyright: ignore

    @cached_property
    def with_slope(self) -> Function:
        """(captured arrays, inputs) -> outputs, as a call; quicker to differentiate by the inputs."""
        return differentiable(self.jaxpr, len(self.consts))

    @property
    def inputs(self) -> list[Var]:
        return self.jaxpr.invars[len(self.consts) :]

    def outputs(self, wanted: Sequence[int]) -> "Graph":
        """The part of the graph that some of the outputs need; takes the same inputs."""
        outvars = [self.jaxpr.outvars[index] for index in wanted]
        part = self.jaxpr.replace(outvars=outvars, debug_info=nameless(self.jaxpr))
        keep = [False] * len(self.consts) + [True] * len(self.inputs)
        needed, used = pruned(part, keep)
        return Graph(needed, tuple(c for c, u in zip(self.consts, used, strict=False) if u))

    def behind(self, wanted: Sequence[int]) -> "Graph":
        """The part of the graph that some of the outputs need, calls whole: quicker to have, for reading."""
        outvars = [self.jaxpr.outvars[index] for index in wanted]
        needed, eqns = {atom for atom in outvars if not isinstance(atom, Literal)}, []
        for eqn in reversed(self.jaxpr.eqns):
            if any(var in needed for var in eqn.outvars):
                eqns.append(eqn)
                needed.update(atom for atom in eqn.invars if not isinstance(atom, Literal))
        part = self.jaxpr.replace(outvars=outvars, eqns=eqns[::-1], debug_info=nameless(self.jaxpr))
        return Graph(part, self.consts)

    def output_shape(self, index: int) -> tuple[int, ...]:
        return getattr(self.jaxpr.outvars[index].aval, "shape")

    @cached_property
    def number(self) -> Any:
        """The type of the sum of the first two outputs."""
        return jnp.result_type(*(_dtype(atom.aval) for atom in self.jaxpr.outvars[:2]))

    @cached_property
    def sites(self) -> Sites:
        """The inputs that the outputs depend on."""
        known: list[Sites] = [NOTHING] * len(self.consts)
        inputs = [frozenset([i]) for i in range(len(self.inputs))]
        depends = dependence(self.jaxpr, [*known, *inputs])
        return NOTHING.union(*(sites_of(depends, atom) for atom in self.jaxpr.outvars))

    @cached_property
    def structure(self) -> str:
        """Equal for graphs that differ only in the captured arrays."""
        return self.known_structure or identity(self.jaxpr)

    def is_known_zero(self, output: int) -> bool:
        """Whether an output is a sum with a captured term of minus infinity: a density that is zero."""
        captured = dict(zip(self.jaxpr.invars, self.consts, strict=False))
        sums = {eqn.outvars[0]: eqn for eqn in self.jaxpr.eqns if eqn.primitive.name == "add"}
        left: list[Any] = [self.jaxpr.outvars[output]]
        while left:
            atom = left.pop()
            if isinstance(atom, Literal):
                continue
            if atom in captured and captured[atom].ndim == 0 and np.isneginf(captured[atom]):
                return True
            left += sums[atom].invars if atom in sums else ()
        return False

    @cached_property
    def has_slope(self) -> bool:
        """Whether it can be differentiated backwards: a loop whose end is not known cannot."""
        return not _has_open_loop(self.jaxpr)

    @cached_property
    def footprint(self) -> int:
        """Bytes of the largest array that one evaluation computes."""
        return max((_bytes(var.aval) for var in _computed(self.jaxpr)), default=8)

    @cached_property
    def volume(self) -> int:
        """Bytes of all arrays that one evaluation computes."""
        return sum(_bytes(var.aval) for var in _computed(self.jaxpr))


def apply(jaxpr: Jaxpr, eqn: JaxprEqn, operands: Sequence[Any]) -> list[Any]:
    """The results of one equation of a jaxpr."""
    given = [(v, x) for v, x in zip(eqn.invars, operands, strict=True) if not isinstance(v, Literal)]
    alone = jaxpr.replace(
        constvars=[],
        invars=[variable for variable, _ in given],
        outvars=list(eqn.outvars),
        eqns=[eqn],
        debug_info=nameless(jaxpr),
    )
    return evaluate(alone, (), *(value for _, value in given))


@lru_cache(256)
def _giving(known: tuple[jax.ShapeDtypeStruct, ...], inputs: tuple[jax.ShapeDtypeStruct, ...]) -> Jaxpr:
    """What gives the first of its arguments; paths without free sites have few kinds of it."""
    jaxpr = jax.make_jaxpr(lambda known, _: known)(list(known), list(inputs)).jaxpr
    return jaxpr.replace(debug_info=nameless(jaxpr))


def _on_device(array: np.ndarray) -> jax.Array:
    """Programs have few numbers, and putting one on a device takes as long as tracing an operation."""
    return jnp.asarray(array) if np.ndim(array) else _number(array.tobytes(), array.dtype)


@lru_cache(4_096)
def _number(number: bytes, dtype: Any) -> jax.Array:
    return jnp.asarray(np.frombuffer(number, dtype)[0])


def _lift_literals(jaxpr: Jaxpr) -> tuple[list[JaxprEqn], dict[Var, np.ndarray]]:
    """Make every floating-point literal a variable: paths often differ only in numbers."""
    eqns, numbers = [], {}
    for eqn in jaxpr.eqns:
        operands = list(eqn.invars)
        for position, atom in enumerate(operands):
            if isinstance(atom, Literal) and np.issubdtype(_dtype(atom.aval), np.floating):
                operands[position] = lifted = Var(atom.aval)
                numbers[lifted] = np.asarray(literal(atom), _dtype(atom.aval))
        eqns.append(eqn.replace(invars=operands))
    return eqns, numbers


_JAXPRS = (Jaxpr, ClosedJaxpr)


def _parameters(jaxpr: Jaxpr) -> Iterator[Any]:
    """Every parameter of every equation, nested functions included."""
    for eqn in jaxpr.eqns:
        for leaf in jax.tree.leaves(eqn.params, is_leaf=lambda x: isinstance(x, _JAXPRS)):
            yield leaf
            if isinstance(leaf, _JAXPRS):
                yield from _parameters(_opened(leaf))


def _has_open_loop(jaxpr: Jaxpr) -> bool:
    for eqn in jaxpr.eqns:
        if eqn.primitive.name == "while":
            return True
        if eqn.primitive.name.startswith("custom_"):  # it says itself what its slope is
            continue
        inside = jax.tree.leaves(eqn.params, is_leaf=lambda x: isinstance(x, _JAXPRS))
        if any(isinstance(one, _JAXPRS) and _has_open_loop(_opened(one)) for one in inside):
            return True
    return False


def _opened(function: Any) -> Jaxpr:
    return getattr(function, "jaxpr", function)


def _computed(jaxpr: Jaxpr) -> Iterator[Any]:
    nested = [_opened(leaf) for leaf in _parameters(jaxpr) if isinstance(leaf, _JAXPRS)]
    for part in (jaxpr, *nested):
        for eqn in part.eqns:
            yield from eqn.outvars


def _dtype(aval: Any) -> Any:
    return aval.dtype


def _bytes(aval: Any) -> int:
    return int(np.prod(aval.shape, dtype=np.int64)) * getattr(_dtype(aval), "itemsize", 8)
