"""Inputs of a trace that are not known before it begins: which sites a run draws, it tells as it goes.

Each is an equation without a value, told apart by its name, that becomes an input of the graph afterwards.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from pathmix.doors.jax import (
    ClosedJaxpr,
    Jaxpr,
    Literal,
    Primitive,
    ShapedArray,
    Tracer,
    alone,
    atom_of,
    computed_by,
    nameless,
    operands,
)
from pathmix.frontends.numpyro.templates import written_out
from pathmix.program.dependence import dependence
from pathmix.program.graph import Graph
from pathmix.program.parameters import Part


class Name(NamedTuple):
    """What an input is: the value of a site or parameter, a given value, a key, or the rows of a plate."""

    kind: str
    name: str | int | Part


FUNCTIONS = (Jaxpr, ClosedJaxpr)
_input = Primitive("pathmix_input")
_input.def_abstract_eval(lambda _, **params: params["aval"])


def traced(function: Callable[[Any], Sequence[Any]]) -> ClosedJaxpr:
    """A function under tracing. It is given a token, from which it makes its inputs.

    What depends on none of them is computed at once, so looking at data is no decision.
    """
    with jax.ensure_compile_time_eval():
        return jax.make_jaxpr(function)(np.zeros(()))


def make_input(token: Any, name: Name, shape: tuple[int, ...], dtype: Any) -> Any:
    """A new input."""
    return _input.bind(token, name=name, aval=ShapedArray(shape, dtype))


def input_name(tracer: Any) -> Name | None:
    """Which input a tracer is; None if it was computed from others."""
    equation = computed_by(tracer)
    return equation.params["name"] if equation is not None and equation.primitive is _input else None


def sources(tracer: Any) -> Sequence[Any]:
    """The operands that a computed tracer depends on: a function may give several results, each of some."""
    equation = computed_by(tracer)
    given = operands(equation)
    if len(equation.outvars) == 1 or not any(isinstance(p, FUNCTIONS) for p in equation.params.values()):
        return given
    found = dependence(alone(equation), [frozenset([number]) for number in range(len(given))])
    return [given[number] for number in sorted(found[atom_of(tracer)])]


def inputs_behind(value: Any) -> Iterator[Name]:
    """The inputs that a value depends on, as they are found."""
    asked, seen = [value], set[Any]()
    while asked:
        tracer = asked.pop()
        if not isinstance(tracer, Tracer) or computed_by(tracer) is None or atom_of(tracer) in seen:
            continue
        seen.add(atom_of(tracer))
        if (name := input_name(tracer)) is None:
            asked += sources(tracer)
        else:
            yield name


def graph_of(closed: ClosedJaxpr, names: Sequence[Name]) -> Graph:
    """The graph of the traced function's results, as a function of these inputs."""
    jaxpr, everything = closed.jaxpr, list(written_out(closed.jaxpr))
    variables = {eqn.params["name"]: eqn.outvars[0] for eqn in everything if eqn.primitive is _input}
    needed = {atom for atom in jaxpr.outvars if not isinstance(atom, Literal)}
    eqns = []
    for eqn in reversed(everything):
        if eqn.primitive is not _input and (eqn.effects or not needed.isdisjoint(eqn.outvars)):
            eqns.append(eqn)
            needed.update(atom for atom in eqn.invars if not isinstance(atom, Literal))
    # In the order of their use: what is dropped may have used them in another.
    captured = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    used = [*(atom for eqn in reversed(eqns) for atom in eqn.invars), *jaxpr.outvars]
    consts = dict.fromkeys(atom for atom in used if not isinstance(atom, Literal) and atom in captured)
    part = jaxpr.replace(
        constvars=list(consts),
        invars=[variables[name] for name in names],
        eqns=eqns[::-1],
        debug_info=nameless(jaxpr),
    )
    return Graph.of(ClosedJaxpr(part, [captured[variable] for variable in consts]))
