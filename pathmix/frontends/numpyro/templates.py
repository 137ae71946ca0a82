"""Templates: what the library computes for a site is traced once for all sites of the same kind.

Tracing a density or a draw takes milliseconds, most of it in layers above the operations, and the same few
distributions come again and again. A template has the operations, as a function of the numbers inside a
distribution; a site then takes a single equation, which is written out when the graph is made. What depends
on known numbers only is computed at once, by code compiled for the template.
"""

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pathmix.doors.jax import (
    ClosedJaxpr,
    Jaxpr,
    JaxprEqn,
    Literal,
    Primitive,
    Tracer,
    Var,
    evaluate,
    nameless,
    untraced,
)
from pathmix.frontends.numpyro.dissection import UnknownPartError, kind_of, plain, rebuilt

# Numbers, and whatever else is the same for all sites of a kind.
Function = Callable[..., tuple[list[Any], Any]]

_MOST_TEMPLATES = 1_024
_MOST_REMEMBERED = 1_024


@dataclass(frozen=True, eq=False)
class Template:
    """The operations of a function; those that need known numbers only come first."""

    known: Callable[..., Any]  # of known numbers: what `rest` takes of them, and results that need no more
    residuals: int  # how many of those `rest` takes
    rest: Jaxpr  # takes them, and what is traced
    outputs: tuple[tuple[int, int], ...]  # where each result is: known, computed by `rest`, or its input
    static: Any
    remembered: dict[Hashable, list[Any]] = field(default_factory=dict)

    def of(self, given: list[Any]) -> list[Any]:
        """What the given numbers alone settle."""
        try:
            key = tuple(map(plain, given))
        except UnknownPartError:
            key = None
        if key is None or key not in self.remembered:
            with untraced():
                results = [np.asarray(r) if np.ndim(r) == 0 else r for r in self.known(*given)]
            # A larger array that is the same for two sites would be one input of the graph, not two.
            if key is None or any(map(np.ndim, results)) or len(self.remembered) == _MOST_REMEMBERED:
                return results
            self.remembered[key] = results
        return self.remembered[key]


_KNOWN, _COMPUTED, _TRACED = range(3)

_template = Primitive("pathmix_template")
_template.multiple_results = True
_template.def_abstract_eval(lambda *_, template: [var.aval for var in template.rest.outvars])


def by_template(function: Function, *arguments: Any, fold: bool = True) -> tuple[list[Any], Any]:
    """What a function gives, which depends on its arguments only.

    Without `fold`, known numbers stay inputs, so that code compiled for the template serves others too.
    """
    leaves: list[Any] = []
    try:
        key = (function, fold, *(kind_of(argument, leaves, real=True) for argument in arguments))
    except UnknownPartError:
        return function(*arguments)
    call = _Call(key, function, arguments, leaves, fold)
    try:
        template = _made(call)
    except Exception:  # said better where it is
        return function(*arguments)
    known = template.of([leaf for leaf in leaves if not isinstance(leaf, Tracer)])
    traced = [leaf for leaf in leaves if isinstance(leaf, Tracer)]
    residuals, known = known[: template.residuals], known[template.residuals :]
    computed = _template.bind(*residuals, *traced, template=template) if template.rest.outvars else []
    results = (known, computed, traced)
    return [results[where][index] for where, index in template.outputs], template.static


def template_of(equation: Any) -> Template | None:
    """The template that an equation stands for."""
    return equation.params["template"] if equation.primitive is _template else None


def written_out(jaxpr: Jaxpr) -> Iterator[JaxprEqn]:
    """The equations of a jaxpr, with those of templates in place of them."""
    for eqn in jaxpr.eqns:
        template = template_of(eqn)
        if template is None:
            yield eqn
            continue
        rest = template.rest
        names: dict[Any, Any] = dict(zip(rest.invars, eqn.invars, strict=True))
        results = dict(zip(rest.outvars, eqn.outvars, strict=True))
        for part in rest.eqns:
            invars = [atom if isinstance(atom, Literal) else names[atom] for atom in part.invars]
            outvars = [results.get(var) or Var(var.aval) for var in part.outvars]
            names.update(zip(part.outvars, outvars, strict=True))
            yield part.replace(invars=invars, outvars=outvars)


class _Call:
    """A call, equal to others that share a template."""

    def __init__(self, key: Hashable, *call: Any) -> None:
        self._key = (key, jnp.result_type(float))
        self._hash = hash(self._key)
        self.call: Any = call

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Call) and self._key == other._key


@lru_cache(_MOST_TEMPLATES)
def _made(call: _Call) -> Template:
    (function, arguments, leaves, fold), call.call = call.call, None  # the cache must keep no tracer
    static = []

    def run(*numbers: Any) -> list[Any]:
        left = iter(numbers)
        results, others = function(*(rebuilt(argument, left, real=True) for argument in arguments))
        static.append(others)
        return results

    def abstract(leaf: Any) -> Any:
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, weak_type=leaf.aval.weak_type)

    closed = jax.make_jaxpr(run)(*(abstract(x) if isinstance(x, Tracer) else x for x in leaves))
    return _divided(closed, [not isinstance(leaf, Tracer) for leaf in leaves], static[0], fold=fold)


def _divided(closed: ClosedJaxpr, is_given: list[bool], static: Any, *, fold: bool) -> Template:
    """A template that computes first what only needs the given inputs."""
    jaxpr = closed.jaxpr
    given = [var for var, is_known in zip(jaxpr.invars, is_given, strict=True) if is_known]
    traced = [var for var, is_known in zip(jaxpr.invars, is_given, strict=True) if not is_known]
    known, first, then = {*given, *jaxpr.constvars}, [], []

    def is_known(atom: Any) -> bool:
        return isinstance(atom, Literal) or atom in known

    for eqn in jaxpr.eqns:
        if fold and not eqn.effects and all(map(is_known, eqn.invars)):
            first.append(eqn)
            known.update(eqn.outvars)
        else:
            then.append(eqn)
    used = dict.fromkeys(a for eqn in then for a in eqn.invars if not isinstance(a, Literal) and a in known)
    results: tuple[list[Any], ...] = ([], [], traced)
    outputs = []
    for atom in jaxpr.outvars:
        where = _KNOWN if is_known(atom) else _TRACED if atom in traced else _COMPUTED
        if where == _KNOWN or atom not in results[where]:
            results[where].append(atom)
        outputs.append((where, len(results[_KNOWN]) - 1 if where == _KNOWN else results[where].index(atom)))
    names = nameless(jaxpr)
    before = jaxpr.replace(invars=given, outvars=[*used, *results[_KNOWN]], eqns=first, debug_info=names)
    rest = jaxpr.replace(
        constvars=[], invars=[*used, *traced], outvars=results[_COMPUTED], eqns=then, debug_info=names
    )

    def compute(*numbers: Any) -> list[Any]:
        return evaluate(before, closed.consts, *numbers)

    return Template(jax.jit(compute) if first else compute, len(used), rest, tuple(outputs), static)
