"""Whether two graphs are the same, numbers included."""

import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pathmix.doors.jax import Jaxpr, Literal, literal
from pathmix.program.canonical import canonical
from pathmix.program.graph import Graph

_ADDRESS = re.compile(r"0x[0-9a-f]+")


def same(first: Graph, second: Graph) -> bool:
    """Whether two graphs compute the same on the same numbers."""
    if _numbers(first, second) and (_alike(first.jaxpr, second.jaxpr) or _text(first) == _text(second)):
        return True
    # A library may keep what it has computed once: then it is a number the second time.
    one, other = (
        canonical(graph, [None] * len(graph.inputs), order=_all(graph)).graph for graph in (first, second)
    )
    return one.structure == other.structure and _numbers(one, other)


def _all(graph: Graph) -> range:
    return range(len(graph.inputs))


def _numbers(first: Graph, second: Graph) -> bool:
    return len(first.consts) == len(second.consts) and all(map(_equal, first.consts, second.consts))


def _alike(first: Jaxpr, second: Jaxpr) -> bool:
    """Whether two jaxprs are the same at first sight: functions inside may be, and be other objects."""
    if len(first.invars) != len(second.invars) or len(first.eqns) != len(second.eqns):
        return False
    names: dict[Any, Any] = dict(zip(first.invars, second.invars, strict=True))

    def match(a: Any, b: Any) -> bool:
        if isinstance(a, Literal):
            return isinstance(b, Literal) and a.aval == b.aval and _equal(literal(a), literal(b))
        return names.get(a) is b

    for one, other in zip(first.eqns, second.eqns, strict=True):
        if (
            one.primitive is not other.primitive
            or len(one.invars) != len(other.invars)
            or not all(map(match, one.invars, other.invars))
            or one.params != other.params
        ):
            return False
        names.update(zip(one.outvars, other.outvars, strict=True))
    return len(first.outvars) == len(second.outvars) and all(map(match, first.outvars, second.outvars))


def _text(graph: Graph) -> str:
    return _ADDRESS.sub("", str(graph.jaxpr))


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, jax.Array) and jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
        return a.dtype == b.dtype and _equal(jax.random.key_data(a), jax.random.key_data(b))
    a, b = np.asarray(a), np.asarray(b)
    return np.array_equal(a, b, equal_nan=np.issubdtype(a.dtype, np.inexact))
