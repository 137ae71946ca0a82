"""Jaxprs as data: their parts in forms that can be pickled, where JAX's own cannot."""

import pickle
import sys
from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from typing import Any

import jax
import numpy as np
from jax._src.linear_util import wrap_init
from jax.tree_util import PyTreeDef

from pathmix.doors.jax import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Primitive, Var, empty, nameless

__all__ = ["NotDataError", "reduced"]

_LIBRARIES = ("jax", "numpyro")
_places: dict[Primitive, tuple[str, str]] = {}  # module and name of each operation


class NotDataError(Exception):
    """A jaxpr has something that only the process knows in which it was traced."""


def reduced(value: Any, written: Callable[[Any], bytes] | None) -> tuple[Any, tuple[Any, ...]] | None:
    """What makes a part of a jaxpr again, and of what; None if it is none, and can be pickled as it is.

    The rules of derivatives are `written` apart, and left out inside of such rules, where they would go on
    without an end.
    """
    match value:
        case Primitive():
            return _operation, _place(value)
        case np.ndarray() if type(value) is not np.ndarray:  # JAX's own, which lose whether they are weak
            return _array, (type(value), np.asarray(value), getattr(value, "aval"))
        case Literal():
            return Literal, (value.val, value.aval)
        case Var():
            return Var, (value.aval,)
        case JaxprEqn():
            parts = (list(value.invars), list(value.outvars), value.primitive, set(value.effects))
            return _equation, (*parts, *_parameters(value, written))
        case Jaxpr():
            variables = (list(value.constvars), list(value.invars), list(value.outvars))
            return _jaxpr, (*variables, list(value.eqns), set(value.effects))
        case ClosedJaxpr():
            return ClosedJaxpr, (value.jaxpr, list(value.consts))
        case PyTreeDef():
            return _tree, (value.node_data(), value.children())
        case _:
            return None


def _parameters(eqn: JaxprEqn, written: Callable[[Any], bytes] | None) -> tuple[dict[str, Any], bytes | None]:
    """Of an operation. The rule of a derivative is a function, and becomes a jaxpr."""
    params = dict(eqn.params)
    if eqn.primitive.name == "custom_vjp_call":
        raise NotDataError("a function with a backward pass of its own")
    if eqn.primitive.name != "custom_jvp_call":
        return params, None
    if params["symbolic_zeros"]:
        raise NotDataError("a derivative that looks for zeros")
    rule, moved = params.pop("jvp_jaxpr_fun"), len(eqn.invars) - params["num_consts"]
    return params, b"" if written is None else written(rule.call_wrapped(*[False] * moved))


def _equation(
    invars: list[Any], outvars: list[Any], primitive: Any, effects: Any, params: Any, written: bytes | None
) -> JaxprEqn:
    if written is not None:

        def rule(*_: bool) -> Any:
            if not written:
                raise NotDataError("a derivative of a derivative")
            return pickle.loads(written)

        params["jvp_jaxpr_fun"] = wrap_init(rule, debug_info=nameless(params["call_jaxpr"].jaxpr))
    other = _any_equation(bool(getattr(jax.config, "jax_threefry_partitionable")))
    return other.replace(invars=invars, outvars=outvars, primitive=primitive, params=params, effects=effects)


@lru_cache
def _any_equation(setting: bool) -> JaxprEqn:
    """Made under a setting of JAX's that equations keep."""
    del setting
    return jax.make_jaxpr(lambda x: x + x)(0.0).jaxpr.eqns[0]


def _array(kind: Any, values: np.ndarray, aval: Any) -> Any:
    made = kind(values, aval)
    if made.aval != aval:
        raise NotDataError("arrays of this version of JAX")
    return made


def _jaxpr(constvars: Any, invars: Any, outvars: Any, eqns: Any, effects: Any) -> Jaxpr:
    parts = {"constvars": constvars, "invars": invars, "outvars": outvars, "eqns": eqns}
    return empty().replace(**parts, effects=effects, debug_info=nameless(empty()))


def _tree(node: Any, children: Any) -> Any:
    return PyTreeDef.from_node_data_and_children(jax.tree_util.default_registry, node, children)


def _place(operation: Primitive) -> tuple[str, str]:
    """Where a library keeps an operation."""
    if operation not in _places:
        for name, module in list(sys.modules.items()):
            if name.split(".")[0] in _LIBRARIES and module is not None:
                found = {v: (name, n) for n, v in vars(module).items() if isinstance(v, Primitive)}
                _places.update(found)
    if operation not in _places:
        raise NotDataError(f"the operation {operation.name}")
    return _places[operation]


def _operation(module: str, name: str) -> Primitive:
    return getattr(import_module(module), name)
