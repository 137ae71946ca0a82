"""Which sites the values inside a graph depend on, through calls, branches and loops."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from pathmix.doors.jax import ClosedJaxpr, Jaxpr, Literal

Known = TypeVar("Known")
Sites = frozenset[int]
NOTHING: Sites = frozenset()
LOOPS_AND_BRANCHES = ("cond", "scan", "while")


def forward(
    jaxpr: Jaxpr,
    given: Sequence[Known],
    known_of: Callable[[dict[Any, Known], Any], Known],
    through: Callable[[Any, list[Known]], Sequence[Known]],
) -> dict[Any, Known]:
    """What is known of every variable, given what is known of the inputs, and what operations make of it."""
    found: dict[Any, Known] = dict(zip(jaxpr.invars, given, strict=True))
    for eqn in jaxpr.eqns:
        operands = [known_of(found, atom) for atom in eqn.invars]
        found.update(zip(eqn.outvars, through(eqn, operands), strict=True))
    return found


def dependence(jaxpr: Jaxpr, sites: Sequence[Sites]) -> dict[Any, Sites]:
    """The sites behind every variable, given those behind the inputs."""
    return forward(jaxpr, sites, sites_of, _through)


def sites_of(depends: dict[Any, Sites], atom: Any) -> Sites:
    return NOTHING if isinstance(atom, Literal) else depends.get(atom, NOTHING)


def settled(body: Any, on: Sequence[Sites], consts: int, carried: int) -> list[Sites]:
    """At the start of any turn of a loop: what it carries gathers sites from turn to turn."""
    current = list(on)
    while True:
        before = current[consts : consts + carried]
        after = _results(body, current)[:carried]
        current[consts : consts + carried] = [a | b for a, b in zip(before, after, strict=True)]
        if current[consts : consts + carried] == before:
            return current


def callee(eqn: Any) -> Any:
    """The function that an operation calls with its own operands, if that is all it does."""
    functions = [p for p in eqn.params.values() if isinstance(p, (Jaxpr, ClosedJaxpr))]
    if eqn.primitive.name in LOOPS_AND_BRANCHES or len(functions) != 1:
        return None
    jaxpr = opened(functions[0])
    # A reduction has a function too, of single elements.
    same = _shapes(jaxpr.invars) == _shapes(eqn.invars) and _shapes(jaxpr.outvars) == _shapes(eqn.outvars)
    return functions[0] if same else None


def _shapes(atoms: Sequence[Any]) -> list[Any]:
    return [getattr(atom.aval, "shape", None) for atom in atoms]


def scanned(eqn: Any) -> tuple[Any, int, int]:
    """The body of a scan, how many of its operands are constant, and how many it carries.

    Told by ranks, since versions of JAX name their parameters differently: what is scanned over has an axis
    more outside of the body.
    """
    body = opened(eqn.params["jaxpr"])
    rows = sum(_rank(a) > _rank(b) for a, b in zip(eqn.invars, body.invars, strict=True))
    carried = sum(_rank(a) == _rank(b) for a, b in zip(eqn.outvars, body.outvars, strict=True))
    return eqn.params["jaxpr"], len(eqn.invars) - carried - rows, carried


def _rank(atom: Any) -> int:
    return len(atom.aval.shape)


def opened(function: Any) -> Jaxpr:
    return getattr(function, "jaxpr", function)


def _through(eqn: Any, on: list[Sites]) -> list[Sites]:
    """The sites behind each result of an operation."""
    if eqn.primitive.name == "scan":
        body, consts, carried = scanned(eqn)
        return _results(body, settled(body, on, consts, carried))
    if eqn.primitive.name == "while":
        return _through_while(eqn, on)
    if (inner := callee(eqn)) is not None:
        return _results(inner, on)
    return [NOTHING.union(*on)] * len(eqn.outvars)


def _through_while(eqn: Any, on: list[Sites]) -> list[Sites]:
    """What a turn carries to the next, and what says how many turns there are."""
    asked, consts = eqn.params["cond_nconsts"], eqn.params["body_nconsts"]
    given = on[asked:]
    carried = settled(eqn.params["body_jaxpr"], given, consts, len(given) - consts)[consts:]
    (turns,) = _results(eqn.params["cond_jaxpr"], [*on[:asked], *carried])
    return [one | turns for one in carried]


def _results(function: Any, sites: Sequence[Sites]) -> list[Sites]:
    jaxpr = opened(function)
    depends = dependence(jaxpr, sites)
    return [sites_of(depends, atom) for atom in jaxpr.outvars]
