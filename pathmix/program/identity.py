"""The identity of a graph, computed from its parts: equal for graphs that compute the same in the same way.

Names do not matter; operations, their order, types of arrays, and every parameter do. The text of a jaxpr
does not serve: it leaves parameters out.
"""

import hashlib
import itertools
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any
from weakref import WeakKeyDictionary

import jax
import numpy as np

from pathmix.doors.jax import ClosedJaxpr, Jaxpr, Literal, literal

_PLAIN = (bool, int, float, complex, str, bytes, type(None))

# Other objects (functions, above all) are told apart by a number. Equal ones have the same.
_numbers = itertools.count()
_mortal: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
_lasting: dict[Any, int] = {}


def identity(jaxpr: Jaxpr) -> str:
    """The same for jaxprs that differ in names only; within a process."""
    return _digest(_of_jaxpr(jaxpr))


def tree_identity(tree: Any) -> str:
    """The same for trees of the same shape with the same fixed parts."""
    return _digest(_of_tree(tree))


def _of_tree(tree: Any) -> list[str | bytes]:
    return ["tree", *_of(tree.node_data()), *(part for child in tree.children() for part in _of_tree(child))]


def _digest(parts: list[str | bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode() if isinstance(part, str) else part)
        digest.update(b"\0")
    return digest.hexdigest()


def _of_jaxpr(jaxpr: Jaxpr) -> list[str | bytes]:
    variables: dict[Any, int] = {}

    def bind(var: Any) -> list[str | bytes]:
        variables[var] = len(variables)
        return [str(variables[var]), *_of_type(var.aval)]

    def use(atom: Any) -> list[str | bytes]:
        if isinstance(atom, Literal):
            return ["literal", *_of_type(atom.aval), *_of(literal(atom))]
        return [str(variables[atom])]

    parts: list[str | bytes] = ["jaxpr"]
    for var in (*jaxpr.constvars, *jaxpr.invars):
        parts += bind(var)
    for eqn in jaxpr.eqns:
        parts.append(f"{eqn.primitive.name} {len(eqn.invars)} {len(eqn.outvars)}")
        for atom in eqn.invars:
            parts += use(atom)
        for var in eqn.outvars:
            parts += bind(var)
        parts += _of(eqn.params)
    for atom in jaxpr.outvars:
        parts += use(atom)
    return [*parts, "end"]


def _of_type(aval: Any) -> list[str | bytes]:
    weak = getattr(aval, "weak_type", False)
    return [f"{type(aval).__name__} {getattr(aval, 'dtype', '')} {getattr(aval, 'shape', '')} {weak}"]


def _of(value: Any) -> list[str | bytes]:
    """A parameter, with the kind of everything inside it."""
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    if isinstance(value, ClosedJaxpr):
        return [kind, *_of_jaxpr(value.jaxpr), *_of(list(value.consts))]
    if isinstance(value, Jaxpr):
        return [kind, *_of_jaxpr(value)]
    if isinstance(value, (np.ndarray, np.generic, jax.Array)):
        array = np.asarray(value)
        if array.dtype.kind != "O":
            return [f"array {array.dtype} {array.shape}", array.tobytes()]
    if isinstance(value, Enum):
        return [kind, value.name]
    if isinstance(value, _PLAIN):
        return [kind, repr(value)]
    if isinstance(value, (tuple, list)):
        return [f"{kind} {len(value)}", *(part for item in value for part in _of(item))]
    if isinstance(value, (set, frozenset)):
        return [f"{kind} {len(value)}", *sorted(str(_of(item)) for item in value)]
    if isinstance(value, Mapping):
        items = sorted(((str(_of(key)), _of(item)) for key, item in value.items()), key=lambda pair: pair[0])
        return [f"{kind} {len(items)}", *(part for key, item in items for part in (key, *item))]
    if isinstance(value, np.dtype):
        return [kind, value.str]
    if is_dataclass(value) and not isinstance(value, type):
        parts = ((field.name, _of(getattr(value, field.name))) for field in fields(value))
        return [kind, *(part for name, inside in parts for part in (name, *inside))]
    return [kind, str(_number(value))]


def _number(value: Any) -> int:
    try:
        return _mortal.setdefault(value, next(_numbers))
    except TypeError:  # it cannot be hashed, or not be referred to weakly
        pass
    try:
        return _lasting.setdefault(value, next(_numbers))
    except TypeError:
        return next(_numbers)  # never the same
