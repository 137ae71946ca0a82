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
import numpy as np
from jax.extend import core as jex
from jax.interpreters import partial_eval


@dataclass(frozen=True, eq=False)
class Graph:
    jaxpr: jex.Jaxpr
    consts: tuple[jax.Array, ...]

    def __call__(self, consts: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
        return jax.core.eval_jaxpr(self.jaxpr, consts, *inputs)

    def outputs(self, wanted: Sequence[int]) -> "Graph":
        """The part of the graph that some of the outputs need; takes the same inputs and consts."""
        used = [index in set(wanted) for index in range(len(self.jaxpr.outvars))]
        lifted = self.jaxpr.replace(
            constvars=[], invars=[*self.jaxpr.constvars, *self.jaxpr.invars], debug_info=None
        )
        pruned, _ = partial_eval.dce_jaxpr(lifted, used, instantiate=True)
        split = len(self.jaxpr.constvars)
        return Graph(
            pruned.replace(
                constvars=pruned.invars[:split], invars=pruned.invars[split:], debug_info=None
            ),
            self.consts,
        )

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


def _bytes(aval: Any) -> int:
    return int(np.prod(aval.shape, dtype=np.int64)) * getattr(aval.dtype, "itemsize", 8)
