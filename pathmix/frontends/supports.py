"""What a support says about a site. Supports are NumPyro constraints in every front end."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpyro.distributions import biject_to, constraints

from pathmix.doors.jax import Tracer
from pathmix.program.graph import Graph
from pathmix.program.slp import BijectionTemplate
from pathmix.regions.expressions import expressions

SupportBounds = tuple[Any, Any] | None

# How far off a support a value may be: as the libraries' own checks allow, and what single precision leaves.
_ROUNDING = {"float64": 1e-6, "float32": 1e-4}


def bounds(support: Any) -> SupportBounds:
    """Bounds for each element, if the support is an interval for each and does not depend on sites."""
    while isinstance(support, constraints.independent):
        support = support.base_constraint
    if support is constraints.real:
        return -np.inf, np.inf
    lower = getattr(support, "lower_bound", -np.inf)
    upper = getattr(support, "upper_bound", np.inf)
    is_interval = hasattr(support, "lower_bound") or hasattr(support, "upper_bound")
    if not is_interval or isinstance(lower, Tracer) or isinstance(upper, Tracer):
        return None
    return np.asarray(lower, float), np.asarray(upper, float)


def integer_bounds(support: Any) -> SupportBounds:
    """Bounds of a discrete support, if it is finite and known."""
    while isinstance(support, constraints.independent):
        support = support.base_constraint
    if support is constraints.boolean:
        return 0, 1
    return bounds(support)


def inside(support: Any, value: Any) -> Any:
    """Whether a value lies in a support, up to rounding; works on traced and on concrete values.

    In a continuous one, the bijection that guides use leads back to the value.
    """
    if support.is_discrete:
        return jnp.all(support(value)) & jnp.all(value == jnp.floor(value))
    value = jnp.asarray(value, float)
    bijection = biject_to(support)
    error = jnp.abs(bijection(bijection.inv(value)) - value)
    return jnp.all(error <= _ROUNDING[value.dtype.name] * (1 + jnp.abs(value)))


class Ranges:
    """Bounds of supports that depend on other sites; known where these are pinned."""

    def __init__(self) -> None:
        self.slots: dict[str, tuple[int, int]] = {}

    def add(self, name: str, support: Any, outputs: list[Any]) -> None:
        while isinstance(support, constraints.independent):
            support = support.base_constraint
        ends = [getattr(support, end, None) for end in ("lower_bound", "upper_bound")]
        if all(end is not None for end in ends):
            self.slots[name] = (len(outputs), len(outputs) + 1)
            outputs += [jnp.asarray(end) for end in ends]

    def known(self, graph: Graph, pinned: Sequence[np.ndarray | None]) -> dict[str, tuple[Any, Any]]:
        """The bounds of those that depend on pinned sites only."""
        if not self.slots:
            return {}
        part = graph.outputs([slot for slots in self.slots.values() for slot in slots])
        values = iter(expressions(part, pinned))
        found = {name: (next(values), next(values)) for name in self.slots}
        return {
            name: (np.asarray(lower.value(), float), np.asarray(upper.value(), float))
            for name, (lower, upper) in found.items()
            if not lower.free and not upper.free
        }


def template(bijection: Any, outputs: list[Any]) -> BijectionTemplate:
    """The bijection with parameters that are known; others are added to the outputs of the trace."""
    leaves, treedef = jax.tree.flatten(bijection)
    return BijectionTemplate(treedef, noted(leaves, outputs))


def noted(values: Sequence[Any], outputs: list[Any]) -> tuple[np.ndarray | int, ...]:
    """Arrays that are known, and the places of others, which are added to the outputs of the trace."""
    slots: list[np.ndarray | int] = []
    for value in values:
        is_output = isinstance(value, Tracer)
        slots.append(len(outputs) if is_output else np.asarray(value))
        outputs += [value] if is_output else []
    return tuple(slots)
