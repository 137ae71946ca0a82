"""The identity of a graph, computed from its parts: equal for graphs that compute the same in the same way.

Names do not matter; operations, their order, types of arrays, and every parameter do. The text of a jaxpr
does not serve: it leaves parameters out.
"""

import hashlib
import itertools
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

import jax
import numpy as np

from pathmix.doors.jax import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, literal, with_derivative

Parts = list[str | bytes]

# Equal ones are the same, and keep nothing else alive. (Numbers are not among them: 1 == 1.0 == True.)
_SIMPLE = (str, type(None), bool, np.dtype)
_PLAIN = (bool, int, float, complex, str, bytes, type(None))

# Other objects (functions, above all) are told apart by a number. Equal ones have the same.
_numbers = itertools.count()
_mortal: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
_lasting: dict[Any, int] = {}
_differentiated: WeakKeyDictionary[Any, Parts] = WeakKeyDictionary()


def identity(jaxpr: Jaxpr) -> str:
    """The same for jaxprs that differ in names only; within a process."""
    return _digest(_of_jaxpr(jaxpr))


def operation_identity(eqn: JaxprEqn) -> str:
    """The same for operations that do the same with operands of the same types; within a process."""
    return " ".join([eqn.primitive.name, *(_type(var.aval) for var in eqn.outvars), _parameters(eqn)])


def _parameters(eqn: JaxprEqn) -> str:
    if not all(type(value) in _SIMPLE for value in eqn.params.values()):
        return _digest(_of_parameters(eqn))
    try:
        return _of_simple(tuple(eqn.params.items()))
    except TypeError:  # there is something inside that cannot be hashed
        return _digest(_of(eqn.params))


@lru_cache(4_096)
def _of_simple(items: tuple[tuple[str, Any], ...]) -> str:
    return _digest(_of(dict(items)))


def type_identity(aval: Any) -> str:
    """Of an array: its kind, and its shape."""
    return _type(aval)


def tree_identity(tree: Any) -> str:
    """The same for trees of the same shape with the same fixed parts."""
    return _digest(_of_tree(tree))


def _of_parameters(eqn: JaxprEqn, *, rules: bool = True) -> Parts:
    """Of an operation. A function with a derivative of its own is known by what both compute: the rule
    itself is another object in every trace."""
    if eqn.primitive.name not in ("custom_jvp_call", "custom_vjp_call"):
        return _of(eqn.params, rules=rules)
    function = eqn.params["call_jaxpr"]
    if not rules:
        return _of(function, rules=False)
    if function not in _differentiated:
        try:
            derivative = _of(with_derivative(eqn), rules=False)
        except Exception:  # the rule cannot take these types: nobody can know what it does
            derivative = _of(eqn.params, rules=False)
        _differentiated[function] = [*_of(function, rules=False), *derivative]
    return _differentiated[function]


def _of_tree(tree: Any) -> Parts:
    return ["tree", *_of(tree.node_data()), *(part for child in tree.children() for part in _of_tree(child))]


def _digest(parts: Parts) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode() if isinstance(part, str) else part)
        digest.update(b"\0")
    return digest.hexdigest()


def _of_jaxpr(jaxpr: Jaxpr, *, rules: bool = True) -> Parts:
    variables: dict[Any, int] = {}

    def bind(var: Any) -> Parts:
        variables[var] = len(variables)
        return [str(variables[var]), *_of_type(var.aval)]

    def use(atom: Any) -> Parts:
        if isinstance(atom, Literal):
            return ["literal", *_of_type(atom.aval), *_of(literal(atom))]
        return [str(variables[atom])]

    parts: Parts = ["jaxpr"]
    for var in (*jaxpr.constvars, *jaxpr.invars):
        parts += bind(var)
    for eqn in jaxpr.eqns:
        parts.append(f"{eqn.primitive.name} {len(eqn.invars)} {len(eqn.outvars)}")
        for atom in eqn.invars:
            parts += use(atom)
        for var in eqn.outvars:
            parts += bind(var)
        parts += _of_parameters(eqn, rules=rules)
    for atom in jaxpr.outvars:
        parts += use(atom)
    return [*parts, "end"]


def _of_type(aval: Any) -> Parts:
    return [_type(aval)]


def _type(aval: Any) -> str:
    try:
        return _known_type(aval)
    except TypeError:  # it cannot be hashed
        return _known_type.__wrapped__(aval)


@lru_cache(4_096)
def _known_type(aval: Any) -> str:
    weak = getattr(aval, "weak_type", False)
    return f"{type(aval).__name__} {getattr(aval, 'dtype', '')} {getattr(aval, 'shape', '')} {weak}"


def _of(value: Any, *, rules: bool = True) -> Parts:
    """A parameter, with the kind of everything inside it."""
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    if isinstance(value, ClosedJaxpr):
        return [kind, *_of_jaxpr(value.jaxpr, rules=rules), *_of(list(value.consts))]
    if isinstance(value, Jaxpr):
        return [kind, *_of_jaxpr(value, rules=rules)]
    if isinstance(value, (np.ndarray, np.generic, jax.Array)):
        array = np.asarray(value)
        if array.dtype.kind != "O":
            return [f"array {array.dtype} {array.shape}", array.tobytes()]
    if isinstance(value, Enum):
        return [kind, value.name]
    if isinstance(value, _PLAIN):
        return [kind, repr(value)]
    if isinstance(value, (tuple, list)):
        return [f"{kind} {len(value)}", *(part for item in value for part in _of(item, rules=rules))]
    if isinstance(value, (set, frozenset)):
        return [f"{kind} {len(value)}", *sorted(str(_of(item, rules=rules)) for item in value)]
    if isinstance(value, Mapping):
        items = sorted(
            ((str(_of(key)), _of(item, rules=rules)) for key, item in value.items()), key=lambda pair: pair[0]
        )
        return [f"{kind} {len(items)}", *(part for key, item in items for part in (key, *item))]
    if isinstance(value, np.dtype):
        return [kind, value.str]
    if is_dataclass(value) and not isinstance(value, type):
        parts = ((field.name, _of(getattr(value, field.name), rules=rules)) for field in fields(value))
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
