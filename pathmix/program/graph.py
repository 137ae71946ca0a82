"""A traced pure function: a jaxpr, and the arrays it captured.

Captured arrays (the data, above all) are arguments of whatever is compiled from a graph, so two
graphs with the same structure share an executable.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jax.extend import core as jex
from jax.interpreters import partial_eval

from pathmix.program.dependence import NOTHING, Sites, dependence, sites_of


@dataclass(frozen=True, eq=False)
class Graph:
    jaxpr: jex.Jaxpr  # takes the captured arrays first, then the inputs
    consts: tuple[jax.Array, ...]

    @staticmethod
    def of(closed: jex.ClosedJaxpr) -> "Graph":
        """The graph of a trace. Numbers in the program become captured arrays too."""
        eqns, numbers = _lift_literals(closed.jaxpr)
        jaxpr = closed.jaxpr.replace(
            constvars=[],
            invars=[*closed.jaxpr.constvars, *numbers, *closed.jaxpr.invars],
            eqns=eqns,
            debug_info=_nameless(closed.jaxpr),
        )
        return Graph(jaxpr, tuple(jnp.asarray(const) for const in (*closed.consts, *numbers.values())))

    def __call__(self, consts: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
        return jax.core.eval_jaxpr(self.jaxpr, (), *consts, *inputs)

    @property
    def inputs(self) -> list[jex.Var]:
        return self.jaxpr.invars[len(self.consts) :]

    def outputs(self, wanted: Sequence[int]) -> "Graph":
        """The part of the graph that some of the outputs need; takes the same inputs."""
        outvars = [self.jaxpr.outvars[index] for index in wanted]
        part = self.jaxpr.replace(outvars=outvars, debug_info=_nameless(self.jaxpr))
        keep = [False] * len(self.consts) + [True] * len(self.inputs)
        pruned, used = partial_eval.dce_jaxpr(part, [True] * len(outvars), keep)
        return Graph(pruned, tuple(c for c, u in zip(self.consts, used, strict=False) if u))

    def output_shape(self, index: int) -> tuple[int, ...]:
        return getattr(self.jaxpr.outvars[index].aval, "shape")

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
        digest = hashlib.sha256(str(self.jaxpr).encode())
        # The text leaves out the values of nested arrays, and what nested functions do.
        for leaf in _parameters(self.jaxpr):
            for item in leaf.consts if isinstance(leaf, jex.ClosedJaxpr) else [leaf]:
                if isinstance(item, (np.ndarray, jax.Array)):
                    digest.update(np.asarray(item).tobytes())
                elif not isinstance(item, _TELLING):
                    digest.update(str(id(item)).encode())  # alive as long as this graph
        return digest.hexdigest()

    @cached_property
    def footprint(self) -> int:
        """Bytes of the largest array that one evaluation computes."""
        return max((_bytes(var.aval) for var in _computed(self.jaxpr)), default=8)


def apply(jaxpr: jex.Jaxpr, eqn: jex.JaxprEqn, operands: Sequence[Any]) -> list[Any]:
    """The results of one equation of a jaxpr."""
    given = [(v, x) for v, x in zip(eqn.invars, operands, strict=True) if not isinstance(v, jex.Literal)]
    alone = jaxpr.replace(
        constvars=[],
        invars=[variable for variable, _ in given],
        outvars=list(eqn.outvars),
        eqns=[eqn],
        debug_info=_nameless(jaxpr),
    )
    return jax.core.eval_jaxpr(alone, (), *(value for _, value in given))


def _lift_literals(jaxpr: jex.Jaxpr) -> tuple[list[jex.JaxprEqn], dict[jex.Var, np.ndarray]]:
    """Make every floating-point literal a variable: paths often differ only in numbers."""
    eqns, numbers = [], {}
    for eqn in jaxpr.eqns:
        operands = list(eqn.invars)
        for position, atom in enumerate(operands):
            if isinstance(atom, jex.Literal) and np.issubdtype(_dtype(atom.aval), np.floating):
                operands[position] = lifted = jex.Var(atom.aval)
                numbers[lifted] = np.asarray(atom.val, _dtype(atom.aval))
        eqns.append(eqn.replace(invars=operands))
    return eqns, numbers


_JAXPRS = (jex.Jaxpr, jex.ClosedJaxpr)
# Parameters whose text says all there is to them.
_TELLING = (int, float, complex, str, bytes, type(None), type, np.dtype, np.generic, Enum, *_JAXPRS)


def _parameters(jaxpr: jex.Jaxpr) -> Iterator[Any]:
    """Every parameter of every equation, nested functions included."""
    for eqn in jaxpr.eqns:
        for leaf in jax.tree.leaves(eqn.params, is_leaf=lambda x: isinstance(x, _JAXPRS)):
            yield leaf
            if isinstance(leaf, _JAXPRS):
                yield from _parameters(_opened(leaf))


def _opened(function: Any) -> jex.Jaxpr:
    return getattr(function, "jaxpr", function)


def _computed(jaxpr: jex.Jaxpr) -> Iterator[Any]:
    nested = [_opened(leaf) for leaf in _parameters(jaxpr) if isinstance(leaf, _JAXPRS)]
    for part in (jaxpr, *nested):
        for eqn in part.eqns:
            yield from eqn.outvars


def _nameless(jaxpr: jex.Jaxpr) -> Any:
    """Debug information that fits any number of inputs and outputs."""
    return jaxpr.debug_info.with_unknown_names()


def _dtype(aval: Any) -> Any:
    return aval.dtype


def _bytes(aval: Any) -> int:
    return int(np.prod(aval.shape, dtype=np.int64)) * getattr(_dtype(aval), "itemsize", 8)
