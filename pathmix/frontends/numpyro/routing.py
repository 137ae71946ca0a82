"""Routes what Python asks of a traced value (`bool`, `int`, `float`, an index, `.item()`) to an observer.

JAX refuses to turn a traced value into a Python value. While `routed(observer)` is active, in this
thread of control only, the observer answers instead.
"""

import operator
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np

from pathmix.doors.jax import answered
from pathmix.doors.numpyro import active_plates
from pathmix.frontends.vectors import vector_decision
from pathmix.program.path import DecisionKind
from pathmix.program.source import raised_at


class Observer(Protocol):
    def owns(self, tracer: Any) -> bool:
        """Whether the tracer belongs to the run under observation (not to a nested jit, say)."""
        ...

    def decide(self, tracer: Any, kind: DecisionKind) -> Any:
        """The Python value to continue with."""
        ...


def routed(observer: Observer) -> AbstractContextManager[None]:
    """Let `observer` answer for every tracer that it owns."""

    def route(answer: Callable[..., Any]) -> Callable[..., Any]:
        def method(tracer: Any, *args: Any, **kwargs: Any) -> Any:
            return answer(observer, tracer, *args, **kwargs) if observer.owns(tracer) else NotImplemented

        return method

    return answered({name: route(answer) for name, answer in _ROUTES.items()})


def note_tracers(error: Exception) -> None:
    """Say what to do where JAX complains that a traced value is no number."""
    if isinstance(error, TypeError) and ("racer" in str(error) or "raced" in str(error)):
        error.add_note(
            f"pathmix: at {raised_at(error)} a number is needed; make one of the random value: "
            "int(k), as in numpyro.plate('n', int(k)). Values inside a function that JAX transforms "
            "(jit, vmap, scan, ...) cannot be looked at."
        )


def _scalar(tracer: Any, what: str) -> Any:
    if tracer.size != 1:
        raise vector_decision(what, tracer.shape, active_plates(), "a loop, without a plate")
    return tracer


def _is_integral(tracer: Any) -> bool:
    return np.issubdtype(tracer.dtype, np.integer) or np.issubdtype(tracer.dtype, np.bool_)


def _bool(observer: Observer, tracer: Any) -> bool:
    return bool(observer.decide(_scalar(tracer, "a truth value"), "bool"))


def _int(observer: Observer, tracer: Any) -> int:
    return int(observer.decide(_scalar(tracer, "an int"), "int"))


def _float(observer: Observer, tracer: Any) -> float:
    kind = "int" if _is_integral(tracer) else "float"
    return float(observer.decide(_scalar(tracer, "a float"), kind))


def _complex(observer: Observer, tracer: Any) -> complex:
    return complex(_float(observer, tracer))


def _index(observer: Observer, tracer: Any) -> int:
    if not _is_integral(tracer):
        raise TypeError(f"a value of type {tracer.dtype} cannot be used as an index")
    return operator.index(int(observer.decide(_scalar(tracer, "an index"), "int")))


def _item(observer: Observer, tracer: Any, *args: int) -> bool | int | float:
    if len(args) > 1:
        tracer = tracer[args]
    elif args:
        (position,) = args
        tracer = tracer.ravel()[position]
    if np.issubdtype(tracer.dtype, np.bool_):
        return _bool(observer, tracer)
    return _int(observer, tracer) if _is_integral(tracer) else _float(observer, tracer)


def _array(observer: Observer, tracer: Any, dtype: Any = None, copy: Any = None) -> np.ndarray:
    del copy  # the answer is always new
    return np.asarray(observer.decide(tracer, "array"), dtype=dtype or tracer.dtype)


def _tolist(observer: Observer, tracer: Any) -> Any:
    return _array(observer, tracer).tolist()


_ROUTES: dict[str, Callable[..., Any]] = {
    "__bool__": _bool,
    "__int__": _int,
    "__float__": _float,
    "__complex__": _complex,
    "__index__": _index,
    "__array__": _array,
    "item": _item,
    "tolist": _tolist,
}
