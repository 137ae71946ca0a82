"""JAX beyond its public interface."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.core
import numpy as np
from jax._src.compilation_cache import reset_cache
from jax._src.core import eval_context, trace_state_clean
from jax._src.xla_bridge import backends_are_initialized
from jax.core import ShapedArray, Tracer
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Primitive, Var
from jax.interpreters import mlir, partial_eval

__all__ = [
    "CacheSettings",
    "ClosedJaxpr",
    "Jaxpr",
    "JaxprEqn",
    "Literal",
    "Primitive",
    "ShapedArray",
    "Tracer",
    "Var",
    "alone",
    "answered",
    "atom_of",
    "cache_settings",
    "called_on_the_host",
    "captured",
    "computed_by",
    "empty",
    "evaluate",
    "has_started",
    "is_transforming",
    "literal",
    "nameless",
    "only",
    "operands",
    "pruned",
    "trace_of",
    "untraced",
    "use_cache",
    "with_derivative",
]

_MISSING = object()


def is_transforming() -> bool:
    """Whether the present call is made inside jit, grad, vmap, ...: nothing public tells without a tracer."""
    return not trace_state_clean()


def has_started() -> bool:
    """Whether JAX's threads run. Asking it for its devices would start them."""
    return backends_are_initialized()


class CacheSettings(NamedTuple):
    """Where JAX keeps what it has compiled, and what is worth keeping."""

    jax_compilation_cache_dir: str | None
    jax_persistent_cache_min_compile_time_secs: float = 0.0
    jax_persistent_cache_min_entry_size_bytes: int = -1


def cache_settings() -> CacheSettings:
    """As they are."""
    return CacheSettings(*(getattr(jax.config, name) for name in CacheSettings._fields))


def use_cache(settings: CacheSettings) -> None:
    """JAX opens the folder of its first compilation once and for all, unless it is reset."""
    reset_cache()
    for name, value in settings._asdict().items():
        jax.config.update(name, value)


def trace_of(tracer: Any) -> Any:
    """The trace that a tracer belongs to: an observer answers for those of its own run only."""
    return tracer._trace


# While a function is traced, its jaxpr is not there yet, and nothing public leads from a tracer to what it
# was computed from. Each tracer holds the equation that made it, which holds its operands, again tracers.


def atom_of(tracer: Any) -> Any:
    """The variable of a tracer in the jaxpr to be, or the literal that it stands for."""
    return tracer.val


def computed_by(tracer: Any) -> Any:
    """The equation that a tracer is a result of; None for inputs and what was captured."""
    return tracer.parent


def operands(equation: Any) -> Sequence[Any]:
    """The tracers that an equation takes."""
    return equation.in_tracers


def captured(tracer: Any) -> Any:
    """The number that a tracer stands for which no equation has made."""
    atom = atom_of(tracer)
    return literal(atom) if isinstance(atom, Literal) else trace_of(tracer).frame.constvar_to_val[atom]


@cache
def empty() -> Jaxpr:
    """Without anything: what others are made from."""
    return jax.make_jaxpr(lambda: ())().jaxpr


def only(eqn: JaxprEqn) -> Jaxpr:
    """A jaxpr of one equation, which takes all of its operands, numbers too, and gives its own results."""
    inputs: list[Any] = [Var(atom.aval) for atom in eqn.invars]
    return empty().replace(
        invars=inputs,
        outvars=list(eqn.outvars),
        eqns=[eqn.replace(invars=inputs)],
        effects=eqn.effects,
        debug_info=nameless(empty()),
    )


def alone(equation: Any) -> Jaxpr:
    """The same of an equation under tracing."""
    of, inputs = equation, [Var(tracer.aval) for tracer in operands(equation)]
    return only(
        JaxprEqn(inputs, list(of.outvars), of.primitive, of.params, of.effects, of.source_info, of.ctx)
    )


def untraced() -> AbstractContextManager[None]:
    """Inside, operations are computed, though a function is being traced around them."""
    return eval_context()


def evaluate(jaxpr: Jaxpr, consts: Sequence[Any], *inputs: Any) -> list[Any]:
    """The outputs of a jaxpr. There is no public way back from a jaxpr to a function."""
    return jax.core.eval_jaxpr(jaxpr, consts, *inputs)


def pruned(jaxpr: Jaxpr, keep_inputs: Sequence[bool]) -> tuple[Jaxpr, list[bool]]:
    """A jaxpr without what its outputs do not need, and which inputs are left."""
    found, used = partial_eval.dce_jaxpr(jaxpr, [True] * len(jaxpr.outvars), list(keep_inputs))
    return found, list(used)


def with_derivative(eqn: JaxprEqn) -> ClosedJaxpr:
    """What an operation computes, and how it pulls a change of its results back to its operands."""
    function = only(eqn)

    def both(operands: list[Any]) -> Any:
        results, pull_back = jax.vjp(lambda *values: evaluate(function, (), *values), *operands)
        return pull_back([_change(result) for result in results])

    shapes = [jax.ShapeDtypeStruct(getattr(v.aval, "shape"), getattr(v.aval, "dtype")) for v in eqn.invars]
    return jax.make_jaxpr(both)(shapes)


def _change(result: Any) -> Any:
    is_smooth = np.issubdtype(result.dtype, np.inexact)
    return result if is_smooth else np.zeros(result.shape, jax.dtypes.float0)


def literal(atom: Literal) -> Any:
    """The number that a jaxpr has in the place of a variable."""
    return atom.val


def nameless(jaxpr: Jaxpr) -> Any:
    """Debug information that fits any number of inputs and outputs: a jaxpr cannot be rebuilt without."""
    return jaxpr.debug_info.with_unknown_names()


# Who answers, in this thread of control: other threads of the user's keep JAX's own methods.
_answers: ContextVar[Mapping[str, Callable[..., Any]] | None] = ContextVar("pathmix_answers", default=None)


@contextmanager
def answered(answers: Mapping[str, Callable[..., Any]]) -> Iterator[None]:
    """Inside, methods of tracers (`__bool__`, `item`, ...) are these functions, or JAX's where they give
    `NotImplemented`. JAX refuses to make a Python value of a tracer, and has no hook for it."""
    saved = {name: Tracer.__dict__.get(name, _MISSING) for name in answers}
    token = _answers.set(answers)
    try:
        for name, original in saved.items():
            setattr(Tracer, name, _method(name, original))
        yield
    finally:
        for name, original in saved.items():
            if original is _MISSING:
                delattr(Tracer, name)
            else:
                setattr(Tracer, name, original)
        _answers.reset(token)


def _method(name: str, original: Any) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        answer = (_answers.get() or {}).get(name)
        result = NotImplemented if answer is None else answer(self, *args, **kwargs)
        if result is not NotImplemented:
            return result
        if original is _MISSING:  # JAX finds it by the kind of array
            return getattr(self.aval, name).fun(self, *args, **kwargs)
        return original(self, *args, **kwargs)

    method.__name__ = name
    return method


def called_on_the_host(
    name: str, avals: Callable[..., Sequence[ShapedArray]], host: Callable[..., Callable[..., Any]]
) -> Callable[..., Any]:
    """A primitive that calls Python from compiled code; `host` makes the function from its parameters.

    `jax.pure_callback` puts the arguments on a device from within the runtime's own threads, and these then
    wait for each other when several programs run at once; and since 64-bit numbers are switched on for the
    engine's threads only, it rounds them in the runtime's.
    """
    primitive = Primitive(name)
    primitive.multiple_results = True

    def lowered(ctx: Any, *operands: Any, **params: Any) -> Any:
        results, _, _ = mlir.emit_python_callback(
            ctx,
            host(**params),
            None,
            list(operands),
            ctx.avals_in,
            ctx.avals_out,
            has_side_effect=False,
            returns_token=False,
        )
        return results

    def on_arrays(*arrays: np.ndarray, **params: Any) -> Any:
        return jax.jit(lambda *inside: primitive.bind(*inside, **params))(*arrays)

    primitive.def_abstract_eval(lambda *_, **params: list(avals(**params)))
    primitive.def_impl(on_arrays)
    mlir.register_lowering(primitive, lowered)
    return primitive.bind
