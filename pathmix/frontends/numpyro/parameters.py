"""The parameters of a NumPyro program under tracing: numbers, or inputs where they are learned."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from numpyro.distributions import biject_to, constraints

from pathmix.doors.jax import Tracer, trace_of
from pathmix.errors import ParameterError
from pathmix.frontends.numpyro.inputs import Name, make_input
from pathmix.program.parameters import Parameter, Part, is_learnable
from pathmix.program.program import Program
from pathmix.program.source import caller


class Parameters:
    """Gives `param` statements their values, and notes what they are."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.learned: list[Parameter] = []
        self._values: dict[str, Any] = {}  # of those that are not initial ones

    def begin(self, token: Any) -> None:
        self.token = token

    def rows(self, part: Part) -> Any:
        """What an input is in every run."""
        return jnp.asarray(jax.tree.leaves(self.program.params[part.name])[part.number], float)

    def give(self, msg: Any) -> None:
        """A value for a statement, unless it keeps its initial one."""
        if msg["type"] != "param" or self.program.parameter_use == "initial":
            return
        name, known = msg["name"], self.program.params
        if name not in self._values:
            if name not in known:
                initial = msg["fn"](*msg["args"], **msg["kwargs"])
                if not jax.tree.leaves(initial):
                    return  # a module that asks whether there is one
                self._keep(msg["name"], initial)
            value = jax.tree.map(jnp.asarray, known[name])
            self._values[name] = value if self.program.parameter_use == "given" else self._lifted(msg, value)
        msg["value"] = self._values[name]

    def note(self, msg: Any) -> None:
        """The value that a statement has, if it is the first one of its name and known."""
        if msg["type"] == "param" and self.program.parameter_use == "initial":
            leaves = jax.tree.leaves(msg["value"])
            if leaves and not any(isinstance(leaf, Tracer) for leaf in leaves):
                self.program.params.setdefault(msg["name"], msg["value"])

    def _keep(self, name: str, value: Any) -> None:
        if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(value)):
            raise ParameterError(
                f"The initial value of the parameter {name!r} at {caller()} depends on a random value, so "
                'there is nothing to start from. Give it a number, or keep it fixed (parameters="fixed").'
            )
        self.program.params[name] = value

    def _lifted(self, msg: Any, value: Any) -> Any:
        """The value as inputs of the trace."""
        bijection = _bijection(msg)
        leaves, tree = jax.tree.flatten(value)
        for number, leaf in enumerate(leaves):
            if not is_learnable(leaf):
                continue
            part = Part(msg["name"], number)
            self.learned.append(Parameter(part, jnp.shape(leaf), caller(), bijection))
            leaves[number] = lifted = make_input(
                self.token, Name("param", part), jnp.shape(leaf), jnp.result_type(float)
            )
            if trace_of(lifted) is not trace_of(self.token):
                raise ParameterError(
                    f"The parameter {part.name!r} at {caller()} is inside of a function that JAX transforms "
                    "(jit, vmap, grad, scan, ...), where it cannot be learned. Take the statement out of it."
                )
        return tree.unflatten(leaves)


def refuse_inside(statements: Sequence[Any]) -> None:
    """Refuse parameters of functions that `scan` or `cond` run: they have copies of their own."""
    for statement in statements:
        if statement["type"] == "param":
            raise ParameterError(
                f"The parameter {statement['name']!r} is inside of a scan or cond of numpyro.contrib."
                f"control_flow at {caller()}, where it cannot be learned. Take the statement out of it."
            )


def _bijection(msg: Any) -> Any:
    constraint = msg["kwargs"].get("constraint", constraints.real)
    try:
        bijection = biject_to(constraint)
    except NotImplementedError as error:
        raise ParameterError(
            f"The parameter {msg['name']!r} at {caller()} has the constraint {constraint!r}, onto which no "
            'smooth map from R^n is known. Give it another one, or keep it fixed (parameters="fixed").'
        ) from error
    if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(bijection)):
        raise ParameterError(
            f"The constraint of the parameter {msg['name']!r} at {caller()} depends on a random value."
        )
    return bijection
