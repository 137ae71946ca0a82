"""A graph as expressions over the values of sites: what a condition depends on, and what it says.

Calls are opened, and everything that depends only on captured arrays and pinned sites is a known
value, computed when it is asked for.
"""

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.dtypes import canonicalize_dtype

from pathmix.doors.jax import ClosedJaxpr, Jaxpr, Literal, literal
from pathmix.program.graph import Graph

_CALLS = ("jit", "pjit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call")
_STRUCTURAL = (
    "reshape",
    "squeeze",
    "broadcast_in_dim",
    "slice",
    "dynamic_slice",
    "gather",
    "transpose",
    "rev",
    "copy",
)


@dataclass(eq=False)
class Expression:
    """One value in a graph."""

    operator: str
    inputs: tuple["Expression", ...] = ()
    bind: Any = None  # computes the value from the inputs' values
    params: dict[str, Any] = field(default_factory=dict)
    dtype: Any = None
    shape: tuple[int, ...] = ()
    site: int | None = None
    known: Any = None
    sites: frozenset[int] = frozenset()  # all sites it depends on, pinned ones too
    free: bool = False  # depends on a site that is not pinned

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))

    def value(self) -> Any:
        """The value of an expression that depends on no free site."""
        left = [self]
        while left:  # without recursion: long loops make deep expressions
            node = left[-1]
            waiting = [child for child in node.inputs if child.known is None] if node.known is None else []
            left += waiting
            if not waiting:
                left.pop()
                if node.known is None:
                    node.known = node.bind(*(child.known for child in node.inputs))
        return self.known

    def number(self) -> float | None:
        """The one number that all elements are, if they are known and it is exact as a float."""
        if self.free or self.size == 0:
            return None
        values = np.asarray(self.value()).ravel()
        first = values[0]
        if np.any(values != first) or np.iscomplexobj(values):
            return None
        return None if np.issubdtype(values.dtype, np.integer) and abs(int(first)) > 2**53 else float(first)

    def elements(self) -> tuple[int, np.ndarray] | None:
        """The site and the positions in it, if this is made of nothing but elements of one free site."""
        found = self._elements()
        if found is None:
            return None
        site, size, moved = found
        positions = np.asarray(moved)
        # Reading beyond the end gives a filler (NaN), not an element.
        is_inside = np.all((positions >= 0) & (positions < size))
        return (site, positions.astype(int)) if is_inside else None

    def _elements(self) -> tuple[int, int, Any] | None:
        """The site, its size, and the positions in it that make up this expression."""
        if self.site is not None:
            return (self.site, self.size, jnp.asarray(self.known)) if self.free else None
        if self.operator not in _STRUCTURAL or any(child.free for child in self.inputs[1:]):
            return None
        found = self.inputs[0]._elements()
        if found is None:
            return None
        # Let the operation move the positions as it moves the values.
        site, size, positions = found
        return site, size, self.bind(positions, *(child.value() for child in self.inputs[1:]))


def expressions(graph: Graph, pinned: Sequence[np.ndarray | None]) -> list[Expression]:
    """The outputs of `graph`, whose inputs are sites; `pinned[i]` is the value of a pinned one."""
    inputs = [
        _site(index, var.aval, value)
        for index, (var, value) in enumerate(zip(graph.inputs, pinned, strict=True))
    ]
    return _open(graph.jaxpr, [], [*(_known(const) for const in graph.consts), *inputs])


def _open(jaxpr: Jaxpr, consts: Sequence[Expression], inputs: Sequence[Expression]) -> list[Expression]:
    scope: dict[Any, Expression] = dict(zip(jaxpr.constvars, consts, strict=True))
    scope.update(zip(jaxpr.invars, inputs, strict=True))

    def read(atom: Any) -> Expression:
        return _known(literal(atom)) if isinstance(atom, Literal) else scope[atom]

    for eqn in jaxpr.eqns:
        operands = tuple(read(atom) for atom in eqn.invars)
        inner = eqn.params.get("jaxpr") or eqn.params.get("call_jaxpr")
        if eqn.primitive.name in _CALLS and isinstance(inner, ClosedJaxpr):
            results = _open(inner.jaxpr, [_known(const) for const in inner.consts], operands)
        else:
            results = [_operation(eqn, operands, index) for index in range(len(eqn.outvars))]
        scope.update(zip(eqn.outvars, results, strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def _known(value: Any) -> Expression:
    dtype = value.dtype if hasattr(value, "dtype") else np.asarray(value).dtype
    return Expression("known", dtype=dtype, shape=np.shape(value), known=value)


def _site(index: int, aval: Any, value: np.ndarray | None) -> Expression:
    free = value is None
    return Expression(
        "site",
        dtype=aval.dtype,
        shape=tuple(aval.shape),
        site=index,
        known=np.arange(np.prod(aval.shape), dtype=float).reshape(aval.shape) if free else value,
        sites=frozenset([index]),
        free=free,
    )


@dataclass(eq=False)
class _OnNumbers:
    """An operation, known by what it computes: the paths of a program have most of them in common."""

    primitive: Any
    params: dict[str, Any]
    values: list[np.ndarray]

    def __post_init__(self) -> None:
        numbers = tuple((canonicalize_dtype(one.dtype), one.shape, one.tobytes()) for one in self.values)
        self._key = (self.primitive, tuple(self.params.items()), numbers)
        self._hash = hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _OnNumbers) and self._key == other._key

    def __hash__(self) -> int:
        return self._hash


@lru_cache(maxsize=2**14)
def _on_numbers(operation: _OnNumbers) -> np.ndarray:
    return np.asarray(operation.primitive.bind(*map(jnp.asarray, operation.values), **operation.params))


def _are_numbers(values: Sequence[Any]) -> bool:
    return all(np.size(one) == 1 and isinstance(getattr(one, "dtype", None), np.dtype) for one in values)


def _operation(eqn: Any, operands: tuple[Expression, ...], index: int) -> Expression:
    aval = eqn.outvars[index].aval
    shape = tuple(getattr(aval, "shape", ()))

    def bind(*values: Any) -> Any:
        # A number of numbers only: what is kept has to be small.
        if math.prod(shape) == 1 and _are_numbers(values) and not eqn.primitive.multiple_results:
            with suppress(TypeError):  # what cannot be a key
                return _on_numbers(_OnNumbers(eqn.primitive, eqn.params, [np.asarray(one) for one in values]))
        result = eqn.primitive.bind(*map(jnp.asarray, values), **eqn.params)
        return result[index] if eqn.primitive.multiple_results else result

    return Expression(
        eqn.primitive.name,
        operands,
        bind,
        eqn.params,
        dtype=getattr(aval, "dtype", None),
        shape=shape,
        sites=frozenset[int]().union(*(child.sites for child in operands)),
        free=any(child.free for child in operands),
    )
