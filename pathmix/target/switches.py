"""Switches: values in a graph that change in steps while the sites change smoothly.

Comparisons, conversions to integers, `floor`, `sign`, `argmax`, the order of a sort, a remainder: where one
of them flips, the density may jump. Evaluating a graph here gives, beside its outputs, a mark for each
switch that depends on a free site: a number that changes when the switch does. Those that signs decide
(`signs.py`) are none.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pathmix.doors.jax import Jaxpr, Literal, Var, literal
from pathmix.program.dependence import NOTHING, Sites, callee, dependence, opened, scanned, settled, sites_of
from pathmix.program.graph import Graph, apply
from pathmix.target.signs import UNKNOWN, Sign, compared, sign_of, signs

# Marks of each operation that makes switches, a vector of them, with the sites that they depend on.
Marks = list[tuple[jax.Array, Sites]]

Switches = list[tuple[int, Sites]]  # how many marks each operation makes

_KEEPING = ("reduce_sum", "reshape", "squeeze", "broadcast_in_dim", "max", "select_n", "copy")
_MOST_MARKS = 64  # of one operation

# What steps in floating-point results that do not.
_STEPS: dict[str, Callable[..., jax.Array]] = {
    "floor": jnp.floor,
    "ceil": jnp.ceil,
    "round": jnp.round,
    "sign": jnp.sign,
    "rem": lambda x, y: jnp.trunc(x / y),
    "atan2": lambda y, x: (y < 0) & (x < 0),
    "abs": lambda x: x < 0,
    "div": lambda _, y: y < 0,
    "pow": lambda x, _: x < 0,
    "tan": lambda x: jnp.floor(x / jnp.pi + 0.5),
}


# Vectors that change places where two values meet.
_OF_RESULTS: dict[str, Callable[[list[Any]], jax.Array]] = {
    "eigh": lambda results: _largest(results[0] if results[0].ndim > results[1].ndim else results[1]),
    "svd": lambda results: _largest(results[1]) if len(results) > 1 else jnp.zeros(1),
}


def _largest(columns: jax.Array) -> jax.Array:
    """The place of the largest element of each column, and its sign."""
    places = jnp.argmax(jnp.abs(columns), axis=-2, keepdims=True)
    return 2 * places + (jnp.take_along_axis(columns, places, axis=-2) < 0)


def evaluate_marked(
    graph: Graph, consts: Sequence[Any], values: Sequence[Any], known: Sequence[Sign] | None = None
) -> tuple[list[Any], Marks]:
    """The outputs of a graph at the values of its free sites, and the marks of its switches.

    Signs of all inputs may be `known`.
    """
    sites = [frozenset([i]) for i in range(len(values))]
    inputs = [*consts, *values]
    return _evaluate(
        graph.jaxpr, [], inputs, [*[NOTHING] * len(consts), *sites], known or [UNKNOWN] * len(inputs)
    )


def _evaluate(
    jaxpr: Jaxpr, consts: Sequence[Any], inputs: Sequence[Any], sites: Sequence[Sites], known: Sequence[Sign]
) -> tuple[list[Any], Marks]:
    depends, signed = dependence(jaxpr, sites), signs(jaxpr, known)
    values: dict[Any, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    values.update(zip(jaxpr.invars, inputs, strict=True))
    marks: Marks = []
    squares: dict[Any, Any] = {}  # variables that are squares, and of what: the root of one is |x|

    def read(atom: Any) -> Any:
        return literal(atom) if isinstance(atom, Literal) else values[atom]

    for eqn in jaxpr.eqns:
        operands = [read(atom) for atom in eqn.invars]
        on = [sites_of(depends, atom) for atom in eqn.invars]
        told = [sign_of(signed, atom) for atom in eqn.invars]
        inside = _INSIDE.get(eqn.primitive.name)
        if any(on) and inside is not None:
            results, found = inside(eqn, operands, on)
        elif any(on) and _opens(eqn):
            results, found = _function(callee(eqn), operands, on, told)
        else:
            results = apply(jaxpr, eqn, operands)
            found = [] if _decided(eqn, told) else _steps(eqn, operands, results, on)
        marks += found
        if any(on):
            marks += [(_marks(root < 0), NOTHING.union(*on)) for root in _roots(eqn, operands, squares)]
        values.update(zip(eqn.outvars, results, strict=True))
    return [read(atom) for atom in jaxpr.outvars], marks


def _steps(eqn: Any, operands: list[Any], results: list[Any], on: list[Sites]) -> Marks:
    """The switches that one operation makes of floating-point numbers."""
    if not any(sites and _is_float(atom.aval) for sites, atom in zip(on, eqn.invars, strict=True)):
        return []
    name = eqn.primitive.name
    steps = [r for r, var in zip(results, eqn.outvars, strict=True) if _is_whole(var.aval)]
    if name == "div" and not on[1]:
        return []  # a known denominator
    if name in _STEPS and not any(jnp.iscomplexobj(operand) for operand in operands):
        steps.append(_STEPS[name](*operands))
    elif name in _OF_RESULTS:
        steps.append(_OF_RESULTS[name](results))
    elif name == "integer_pow" and eqn.params["y"] < 0 and eqn.params["y"] % 2:
        steps.append(operands[0] < 0)
    elif name in ("log", "sqrt", "pow") and jnp.iscomplexobj(operands[0]):
        steps.append((jnp.real(operands[0]) < 0) & (jnp.imag(operands[0]) < 0))
    elif name == "sort" and len(operands) > 1 and not steps:
        steps.append(jnp.argsort(operands[0], axis=eqn.params["dimension"]))
    return [(_marks(step), NOTHING.union(*on)) for step in steps]


def _roots(eqn: Any, operands: list[Any], squares: dict[Any, Any]) -> list[Any]:
    """The numbers whose squares this operation takes the root of; squares themselves are noted."""
    name = eqn.primitive.name
    even = (name == "integer_pow" and eqn.params["y"] > 0 and eqn.params["y"] % 2 == 0) or name == "square"
    if (even or (name == "mul" and eqn.invars[0] is eqn.invars[1])) and not jnp.iscomplexobj(operands[0]):
        squares[eqn.outvars[0]] = operands[0]
    known = [squares[atom] for atom in eqn.invars if not isinstance(atom, Literal) and atom in squares]
    if name in ("sqrt", "rsqrt"):
        return known
    if known and (name in _KEEPING or callee(eqn)) and eqn.outvars[0].aval.size == known[0].size:
        squares[eqn.outvars[0]] = known[0]
    return []


def _decided(eqn: Any, signs: list[Sign]) -> bool:
    """Whether an operation would step where a sign changes, and it does not."""
    name = eqn.primitive.name
    odd = name == "integer_pow" and eqn.params["y"] % 2 == 1
    if odd or name == "abs":
        return signs[0].known
    if name == "pow":  # with a pole
        return signs[0].known or signs[1].not_negative
    return signs[1].known if name == "div" else len(signs) == 2 and compared(name, *signs)


def _opens(eqn: Any) -> bool:
    """Whether one can look inside a call. One with a rule for batches (calls of the host) stays closed."""
    return callee(eqn) is not None and not eqn.primitive.name.startswith("custom_vmap")


def _cond(eqn: Any, operands: list[Any], on: list[Sites]) -> tuple[list[Any], Marks]:
    (index, *rest), (_, *rest_on) = operands, on
    functions = eqn.params["branches"]
    switches = [_switches(function, rest_on) for function in functions]

    def branch(number: int) -> Callable[..., Any]:
        def run(*inputs: Any) -> Any:
            results, marks = _function(functions[number], inputs, rest_on)
            return results, [
                _stacked(marks) if i == number else _blank(other) for i, other in enumerate(switches)
            ]

        return run

    results, marks = jax.lax.switch(index, [branch(i) for i in range(len(functions))], *rest)
    return results, [pair for row, sites in zip(marks, switches, strict=True) for pair in _pairs(row, sites)]


def _scan(eqn: Any, operands: list[Any], on: list[Sites]) -> tuple[list[Any], Marks]:
    body, consts, carried = scanned(eqn)
    fixed, start, rows = operands[:consts], operands[consts : consts + carried], operands[consts + carried :]
    on = settled(body, on, consts, carried)
    switches = _switches(body, on)

    def step(state: Any, row: Any) -> Any:
        carry, seen = state
        results, marks = _function(body, [*fixed, *carry, *row], on)
        return (_like(carry, results[:carried]), _onward(seen, marks)), results[carried:]

    (carry, seen), stacked = jax.lax.scan(
        step,
        (_like(opened(body).invars[consts : consts + carried], start), _blank(switches)),
        list(rows),
        length=eqn.params["length"],
        reverse=eqn.params["reverse"],
    )
    return [*carry, *stacked], _pairs(seen, switches)


def _while(eqn: Any, operands: list[Any], on: list[Sites]) -> tuple[list[Any], Marks]:
    test, body = eqn.params["cond_jaxpr"], eqn.params["body_jaxpr"]
    tested, fixed = eqn.params["cond_nconsts"], eqn.params["body_nconsts"]
    for_test, for_body, start = (
        operands[:tested],
        operands[tested : tested + fixed],
        operands[tested + fixed :],
    )
    # How often a loop turns depends on what its test reads, and so does all that it computes.
    everything = NOTHING.union(*on)
    on_test = [*on[:tested], *[everything] * len(start)]
    on_body = [*on[tested : tested + fixed], *[everything] * len(start)]
    carried = opened(body).invars[fixed:]

    def marks_at(carry: Sequence[Any]) -> Marks:
        tests = _function(test, [*for_test, *carry], on_test)[1]
        return [*tests, *_function(body, [*for_body, *carry], on_body)[1]]

    switches = _sites_of_marks(marks_at, carried)

    def step(state: Any) -> Any:
        carry, seen = state
        results, _ = _function(body, [*for_body, *carry], on_body)
        return _like(carry, results), _onward(seen, marks_at(carry))

    def proceed(state: Any) -> jax.Array:
        return _function(test, [*for_test, *state[0]], on_test)[0][0]

    carry, seen = jax.lax.while_loop(proceed, step, (_like(carried, start), _blank(switches)))
    return list(carry), _pairs(seen, switches)


_INSIDE: dict[str, Callable[..., tuple[list[Any], Marks]]] = {"cond": _cond, "scan": _scan, "while": _while}


def _function(
    function: Any, inputs: Sequence[Any], sites: Sequence[Sites], known: Sequence[Sign] | None = None
) -> tuple[list[Any], Marks]:
    """What a called function gives; nothing is known of signs inside branches and loops."""
    consts = getattr(function, "consts", ())
    return _evaluate(opened(function), consts, inputs, sites, known or [UNKNOWN] * len(inputs))


def _switches(function: Any, sites: Sequence[Sites]) -> Switches:
    """The switches in a function, without computing their marks."""
    return _sites_of_marks(lambda values: _function(function, values, sites)[1], opened(function).invars)


def _sites_of_marks(marks_at: Callable[[Sequence[Any]], Marks], inputs: Sequence[Var]) -> Switches:
    found: Switches = []

    def trace(*values: Any) -> None:
        found.extend((row.size, sites) for row, sites in marks_at(values))

    avals: list[Any] = [variable.aval for variable in inputs]
    jax.eval_shape(trace, *(jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in avals))
    return found


def _marks(steps: Any) -> jax.Array:
    """A number for each element of a switch; in large ones, for each of some stretches of elements."""
    flat = jnp.ravel(jnp.asarray(steps)).astype(jnp.int32).astype(jnp.uint32)
    weights = jax.lax.iota(jnp.uint32, flat.size) * np.uint32(2_654_435_761) | np.uint32(1)
    width = -(-flat.size // _MOST_MARKS)
    padded = jnp.pad(flat * weights, (0, -flat.size % max(width, 1)))
    return jnp.sum(padded.reshape(-1, max(width, 1)), axis=1, dtype=jnp.uint32)


def _onward(seen: jax.Array, marks: Marks) -> jax.Array:
    return seen * np.uint32(31) + _stacked(marks)


def _stacked(marks: Marks) -> jax.Array:
    return jnp.concatenate([row for row, _ in marks]) if marks else jnp.zeros(0, jnp.uint32)


def _blank(switches: Switches) -> jax.Array:
    return jnp.zeros(sum(count for count, _ in switches), jnp.uint32)


def _pairs(marks: jax.Array, switches: Switches) -> Marks:
    ends = np.cumsum([count for count, _ in switches])
    return [(marks[end - count : end], sites) for end, (count, sites) in zip(ends, switches, strict=True)]


def _like(templates: Sequence[Any], values: Sequence[Any]) -> list[jax.Array]:
    """Values in the types that a loop carries."""
    return [jnp.asarray(v, _dtype(t)) for t, v in zip(templates, values, strict=True)]


def _dtype(typed: Any) -> Any:
    return getattr(typed, "aval", typed).dtype


def _is_float(aval: Any) -> bool:
    return jnp.issubdtype(aval.dtype, jnp.inexact)


def _is_whole(aval: Any) -> bool:
    return jnp.issubdtype(aval.dtype, jnp.integer) or jnp.issubdtype(aval.dtype, jnp.bool_)
