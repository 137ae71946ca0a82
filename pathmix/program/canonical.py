"""The canonical form of a graph: the same for graphs that compute the same of other numbers.

What depends on known inputs and captured arrays only is evaluated, once. Sums are flattened, their known
terms merged and their equal ones counted; operands that may change places, and the inputs themselves, are put
in an order that depends on what is done with them and not on where or under which name they stand in the
program. Sixteen subsets of four regression coefficients are then five graphs, and a sum of two kernels is the
same in either order.
"""

import hashlib
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from pathmix.doors.jax import ShapedArray
from pathmix.program.collected import collected
from pathmix.program.graph import Graph
from pathmix.program.identity import operation_identity, type_identity
from pathmix.program.interned import interned
from pathmix.program.known import evaluate_known
from pathmix.program.operations import COMMUTATIVE, Operation, Value, as_jaxpr, operations, plain
from pathmix.program.repeated import without_repetition

_EXPANDING = ("broadcast_in_dim", "iota")  # cheaper to do again than to keep
_ROUNDS = 4  # of telling inputs apart by their use


class Canonical(NamedTuple):
    graph: Graph  # takes the unknown inputs, in this order:
    order: tuple[int, ...]


def canonical(
    graph: Graph,
    known: Sequence[Any | None],
    kinds: Sequence[str] | None = None,
    *,
    order: Sequence[int] | None = None,
) -> Canonical:
    """The canonical form, given the inputs that are known; others of different kinds are never exchanged.

    Where there is an `order` of the unknown inputs already, it stays.
    """
    values = [_input(i, var, known[i]) for i, var in enumerate(graph.inputs)]
    captured = [
        Value(plain(v.aval), constant=c) for v, c in zip(graph.jaxpr.invars, graph.consts, strict=False)
    ]
    done, outputs = operations(graph.jaxpr, (), [*captured, *values])
    free = [value for value in values if value.input is not None]
    live, folded, known_ones = _split(done)
    done, terms = _summed(live, outputs)
    edge = [value for operation in done for value in operation.operands]
    edge += [value for pieces in terms.values() for value in pieces] + outputs
    made = {value for operation in folded for value in operation.results}
    evaluate_known(graph.jaxpr, known_ones, [value for value in dict.fromkeys(edge) if value in made])
    for operation in done:
        if operation in terms:
            operation.operands = _merged(terms[operation])
    done, outputs = collected(done, outputs, terms)
    done, outputs = without_repetition(done, outputs)

    names = {i: str(place) for place, i in enumerate(order or ())} or dict(enumerate(kinds or ()))
    identities = {operation: _seed(operation_identity(operation.eqn)) for operation in done}
    kind_of = {value: names.get(_number(value), "") for value in free}
    colours = _colours(done, outputs, kind_of, identities)
    visited = _visited(done, outputs, colours)
    constants = [value for value in visited.inputs if value.input is None]
    if order is None:
        unused = (value for value in free if value not in visited.inputs)
        taken = [*(value for value in visited.inputs if value.input is not None), *unused]
    else:
        taken = [values[i] for i in order]
    given = [*constants, *taken]
    jaxpr = as_jaxpr(graph.jaxpr, given, visited.operations, outputs)
    consts = tuple(interned(jnp.asarray(value.constant, value.aval.dtype)) for value in constants)
    structure = _structure(given, len(constants), visited.operations, outputs)
    return Canonical(Graph(jaxpr, consts, structure), tuple(map(_number, taken)))


def _input(number: int, var: Any, known: Any | None) -> Value:
    return Value(var.aval, input=number) if known is None else Value(var.aval, constant=known)


def _number(value: Value) -> int:
    assert value.input is not None
    return value.input


def _split(done: Sequence[Operation]) -> tuple[list[Operation], list[Operation], list[Operation]]:
    """The operations that stay, those that are folded, and all that depend on nothing unknown.

    An expansion of a known value stays where something that stays uses it; something folded may use it, too.
    """
    unknown: set[Operation] = set()
    for operation in done:
        if any(value.input is not None or value.maker in unknown for value in operation.operands):
            unknown.add(operation)
    known = [operation for operation in done if operation not in unknown]
    wanted = {value for operation in unknown for value in operation.operands}
    for operation in reversed(done):  # an expansion is done again where it is used
        if operation.name in _EXPANDING and any(value in wanted for value in operation.results):
            unknown.add(operation)
            wanted.update(operation.operands)
    return [o for o in done if o in unknown], [o for o in known if o not in unknown], known


def _summed(
    live: Sequence[Operation], outputs: Sequence[Value]
) -> tuple[list[Operation], dict[Operation, list[Value]]]:
    """The operations with sums of sums made one, and the terms of each sum."""
    uses = Counter(value for operation in live for value in operation.operands)
    uses.update(outputs)
    terms: dict[Operation, list[Value]] = {}
    absorbed: set[Operation] = set()
    for operation in live:
        if operation.name == "add" and _is_float(operation.results[0]):
            terms[operation] = []
            for value in operation.operands:
                if value.maker in terms and uses[value] == 1:
                    absorbed.add(value.maker)
                    terms[operation] += terms.pop(value.maker)
                else:
                    terms[operation].append(value)
    return [o for o in live if o not in absorbed], terms


def _merged(terms: Sequence[Value]) -> list[Value]:
    """The terms of a sum with the known ones added up, in an order that depends on their numbers only."""
    unknown = [value for value in terms if value.constant is None]
    known = [value for value in terms if value.constant is not None]
    if not known:
        return unknown
    arrays = sorted((np.asarray(value.constant) for value in known), key=lambda array: array.tobytes())
    total = sum(arrays[1:], arrays[0])
    return [*unknown, Value(ShapedArray(np.shape(total), known[0].aval.dtype), constant=total)]


Colours = dict[Value, int]


def _colours(
    done: Sequence[Operation],
    outputs: Sequence[Value],
    kinds: dict[Value, str],
    identities: dict[Operation, int],
) -> Colours:
    """What is computed at each value.

    Inputs are told apart by their use, as far as that goes, and then by the numbers that they are used with.
    """
    inputs = {value: hash((_seed(type_identity(value.aval)), _seed(kind))) for value, kind in kinds.items()}
    classes = 0
    for _ in range(_ROUNDS):
        if classes == len(set(inputs.values())) or len(set(inputs.values())) == len(inputs):
            break
        classes = len(set(inputs.values()))
        uses = _downward(done, outputs, _upward(done, inputs, identities), identities)
        inputs = {value: hash((colour, uses.get(value, 0))) for value, colour in inputs.items()}
    contents = _contents(done, outputs, inputs, identities)
    ranked = sorted(inputs, key=lambda value: (inputs[value], contents.get(value, 0), value.input))
    return _upward(done, {value: rank for rank, value in enumerate(ranked)}, identities)


def _contents(
    done: Sequence[Operation], outputs: Sequence[Value], inputs: Colours, identities: dict[Operation, int]
) -> Colours:
    """What tells inputs of one colour apart: the numbers that they are used with."""
    if len(set(inputs.values())) == len(inputs):
        return {}
    constants = {
        value: _hashed(np.asarray(value.constant).tobytes())
        for operation in done
        for value in operation.operands
        if value.constant is not None
    }
    return _downward(done, outputs, _upward(done, constants | inputs, identities), identities)


def _upward(done: Sequence[Operation], given: Colours, identities: dict[Operation, int]) -> Colours:
    colours = dict(given)
    for operation in done:
        below = [_colour(colours, value) for value in operation.operands]
        if operation.name in COMMUTATIVE:
            below.sort()
        for position, value in enumerate(operation.results):
            colours[value] = hash((identities[operation], position, *below))
    return colours


def _downward(
    done: Sequence[Operation], outputs: Sequence[Value], colours: Colours, identities: dict[Operation, int]
) -> Colours:
    """How each value is used, all the way to the outputs."""
    uses: dict[Value, list[int]] = {}
    for number, value in enumerate(outputs):
        uses.setdefault(value, []).append(hash((-1, number)))
    for operation in reversed(done):
        above = [hash(tuple(sorted(uses.get(value, ())))) for value in operation.results]
        mine = hash((identities[operation], *above, *(_colour(colours, v) for v in operation.results)))
        for position, value in enumerate(operation.operands):
            place = -1 if operation.name in COMMUTATIVE else position
            uses.setdefault(value, []).append(hash((mine, place)))
    return {value: hash(tuple(sorted(these))) for value, these in uses.items()}


class _Visited(NamedTuple):
    operations: list[Operation]
    inputs: list[Value]  # and constants, in the order of their first use


def _visited(
    done: Sequence[Operation],
    outputs: Sequence[Value],
    colours: Colours,
) -> _Visited:
    """Operations in an order that follows the outputs, operands that may change places ordered by colour."""
    place = {value: number for number, operation in enumerate(done) for value in operation.results}
    found, seen = _Visited([], []), set[Any]()

    def key(value: Value) -> Any:
        # Known operands last; what cannot be told apart stays in its order.
        return value.constant is not None, _colour(colours, value), place.get(value, 0)

    for operation in done:
        if operation.name in COMMUTATIVE:
            operation.operands = sorted(operation.operands, key=key)
    left: list[Any] = list(outputs)[::-1]
    while left:  # without recursion: long programs make deep graphs
        item = left.pop()
        if isinstance(item, Operation):
            found.operations.extend(_in_pairs(item))
        elif item.maker is None:
            if item not in seen and not item.is_literal:
                found.inputs.append(item)
            seen.add(item)
        elif item.maker not in seen:
            seen.add(item.maker)
            left.append(item.maker)
            left += item.maker.operands[::-1]
    return found


def _in_pairs(operation: Operation) -> list[Operation]:
    """A sum of many terms as additions of two."""
    if operation.name != "add" or len(operation.operands) == 2:
        return [operation]
    parts, total = [], operation.operands[0]
    for term in operation.operands[1:-1]:
        part = Operation(operation.eqn, [total, term])
        shape = np.broadcast_shapes(total.aval.shape, term.aval.shape)
        part.results = [Value(ShapedArray(shape, operation.results[0].aval.dtype), part)]
        parts.append(part)
        total = part.results[0]
    last = Operation(operation.eqn, [total, operation.operands[-1]], operation.results)
    return [*parts, last]


def _colour(colours: Colours, value: Value) -> int:
    if value in colours:
        return colours[value]
    kind = f"literal {value.constant!r}" if value.is_literal else "constant"
    return hash((_seed(kind), _seed(type_identity(value.aval))))


@lru_cache(65_536)
def _seed(text: str) -> int:
    """A number for a text, the same in every process. (Python's own hashes are for numbers only.)"""
    return _hashed(text.encode())


def _hashed(content: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest())


def _structure(
    given: Sequence[Value], constants: int, done: Sequence[Operation], outputs: Sequence[Value]
) -> str:
    """Equal for graphs that do the same in the same order; within a process."""
    places = {value: str(place) for place, value in enumerate(given)}
    parts = [str(constants), *(type_identity(value.aval) for value in given)]

    def name(value: Value) -> str:
        if value in places:
            return places[value]
        return f"{type_identity(value.aval)} {value.constant!r}"

    for operation in done:
        parts += [operation_identity(operation.eqn), *map(name, operation.operands)]
        places.update((value, str(len(places))) for value in operation.results)
    parts += ["gives", *map(name, outputs)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _is_float(value: Value) -> bool:
    return np.issubdtype(np.dtype(value.aval.dtype), np.floating)
