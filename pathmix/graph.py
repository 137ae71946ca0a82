"""A traced pure function: a jaxpr, and the arrays it captured.

Captured arrays (the data, above all) are arguments of whatever is compiled from a graph, so two
graphs with the same structure share an executable.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jax.extend import core as jex
from jax.interpreters import partial_eval


@dataclass(frozen=True, eq=False)
class Graph:
    jaxpr: jex.Jaxpr
    consts: tuple[jax.Array, ...]

    @staticmethod
    def of(closed: jex.ClosedJaxpr) -> "Graph":
        """The graph of a trace. Numbers in the program become captured arrays too."""
        jaxpr, numbers = _lift_literals(closed.jaxpr)
        consts = [*closed.consts, *numbers]
        return Graph(jaxpr, tuple(jnp.asarray(const) for const in consts))

    def __call__(self, consts: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
        return jax.core.eval_jaxpr(self.jaxpr, consts, *inputs)

    def outputs(self, wanted: Sequence[int]) -> "Graph":
        """The part of the graph that some of the outputs need; takes the same inputs."""
        outvars = [self.jaxpr.outvars[index] for index in wanted]
        constvars, invars = self.jaxpr.constvars, self.jaxpr.invars
        lifted = self.jaxpr.replace(
            constvars=[], invars=[*constvars, *invars], outvars=outvars, debug_info=_nameless(self.jaxpr)
        )
        keep_inputs = [False] * len(constvars) + [True] * len(invars)
        pruned, used = partial_eval.dce_jaxpr(lifted, [True] * len(outvars), keep_inputs)
        split = sum(used[: len(constvars)])
        consts = tuple(c for c, u in zip(self.consts, used, strict=False) if u)
        jaxpr = pruned.replace(
            constvars=pruned.invars[:split], invars=pruned.invars[split:], debug_info=_nameless(pruned)
        )
        return Graph(jaxpr, consts)

    def output_shape(self, index: int) -> tuple[int, ...]:
        return getattr(self.jaxpr.outvars[index].aval, "shape")

    @cached_property
    def structure(self) -> str:
        """Equal for graphs that differ only in the captured arrays."""
        digest = hashlib.sha256(str(self.jaxpr).encode())
        for inner in closed_jaxprs(self.jaxpr):
            for const in inner.consts:
                digest.update(np.asarray(const).tobytes())
        return digest.hexdigest()

    @cached_property
    def footprint(self) -> int:
        """Bytes of the largest array that one evaluation computes."""
        return max((_bytes(var.aval) for var in _computed(self.jaxpr)), default=8)


def _lift_literals(jaxpr: jex.Jaxpr) -> tuple[jex.Jaxpr, list[Any]]:
    """Make every floating-point literal a captured array: paths often differ only in numbers."""
    constvars, numbers, eqns = list(jaxpr.constvars), [], []
    for eqn in jaxpr.eqns:
        operands = list(eqn.invars)
        for position, atom in enumerate(operands):
            if isinstance(atom, jex.Literal) and np.issubdtype(_dtype(atom.aval), np.floating):
                operands[position] = lifted = jex.Var(atom.aval)
                constvars.append(lifted)
                numbers.append(np.asarray(atom.val, _dtype(atom.aval)))
        eqns.append(eqn.replace(invars=operands))
    return jaxpr.replace(constvars=constvars, eqns=eqns, debug_info=_nameless(jaxpr)), numbers


def closed_jaxprs(jaxpr: jex.Jaxpr) -> Iterator[jex.ClosedJaxpr]:
    """Every jaxpr nested in the parameters of an equation, at any depth."""
    for eqn in jaxpr.eqns:
        for leaf in jax.tree.leaves(eqn.params, is_leaf=lambda x: isinstance(x, jex.ClosedJaxpr)):
            if isinstance(leaf, jex.ClosedJaxpr):
                yield leaf
                yield from closed_jaxprs(leaf.jaxpr)


def _computed(jaxpr: jex.Jaxpr) -> Iterator[Any]:
    for eqn in jaxpr.eqns:
        yield from eqn.outvars
    for inner in closed_jaxprs(jaxpr):
        for eqn in inner.jaxpr.eqns:
            yield from eqn.outvars


def _nameless(jaxpr: jex.Jaxpr) -> Any:
    """Debug information that fits any number of inputs and outputs."""
    return jaxpr.debug_info.with_unknown_names()


def _dtype(aval: Any) -> Any:
    return aval.dtype


def _bytes(aval: Any) -> int:
    return int(np.prod(aval.shape, dtype=np.int64)) * getattr(_dtype(aval), "itemsize", 8)
