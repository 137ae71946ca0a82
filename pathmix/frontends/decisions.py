"""What each kind of decision says about a value: the value seen, and the condition to see it again."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from pathmix.program.path import Decision, DecisionKind


def seen(value: np.ndarray, kind: DecisionKind) -> Decision:
    """The decision that Python takes on this concrete value."""
    if kind == "bool":
        return Decision(kind, bool(value.reshape(())))
    if kind == "int":
        return Decision(kind, int(value.reshape(())))
    if kind == "float":
        return Decision(kind, float(value.reshape(())))
    return Decision(kind, as_tuples(value))


def holds(value: Any, decision: Decision) -> Any:
    """Whether a value leads to the same decision; works on traced and on concrete values."""
    if decision.kind == "array":
        return jnp.all(value == jnp.asarray(decision.value, dtype=value.dtype))
    scalar = jnp.reshape(value, ())
    if decision.kind == "bool":
        truth = scalar if scalar.dtype == jnp.bool_ else scalar != 0
        return truth if decision.value else ~truth
    if decision.kind == "int" and jnp.issubdtype(scalar.dtype, jnp.floating):
        scalar = scalar.astype(jnp.arange(1).dtype)  # like int(), rounds towards zero
    return scalar == decision.value


def as_tuples(value: np.ndarray) -> Any:
    """Nested tuples of Python scalars: hashable, and the same on every machine."""
    value = np.asarray(value)
    return value.item() if value.ndim == 0 else tuple(as_tuples(row) for row in value)


def agree(values: np.ndarray, decision: Decision) -> np.ndarray:
    """`holds`, over a leading batch of concrete values."""
    flat = values.reshape(len(values), -1)
    if decision.kind == "array":
        return np.all(flat == np.ravel(np.asarray(decision.value)), axis=1)
    scalar = flat[:, 0]
    if decision.kind == "bool":
        return (scalar != 0) == decision.value
    if decision.kind == "int":
        scalar = np.trunc(scalar)
    return scalar == decision.value
