"""Recognise: which library a program is written in, found by running it up to its first statement."""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from pathmix.doors.numpyro import unvalidated
from pathmix.engine.undisturbed import undisturbed
from pathmix.errors import MissingExtraError
from pathmix.frontends import numpyro as numpyro_frontend
from pathmix.frontends.statements import loaded_libraries, one_program, watched
from pathmix.program.arguments import Frames, has_frames, taken
from pathmix.program.program import Frontend, Limits, Program
from pathmix.program.seeds import Seed


class _Recognised(BaseException):
    """Ends the run at the first statement. No program may catch it."""


def bind(
    model: Callable[..., Any],
    args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] | None = None,
    limits: Limits = Limits(),
) -> Program:
    """A model with its arguments, in the language that it is written in."""
    frontend = recognise(model, args, kwargs or {})
    program = Program(model, (), {}, frontend, limits)
    given = program.with_arguments(args, kwargs or {})
    if not has_frames((args, kwargs)) or _runs(given):
        return given
    others: tuple[Frames, ...] = ("columns", "arrays")
    candidates = (replace(program, frames=frames).with_arguments(args, kwargs or {}) for frames in others)
    return next(filter(_runs, candidates), given)


def _runs(program: Program) -> bool:
    """Whether a run of the program comes to its end, without making numbers of continuous values."""
    try:
        batch_run = next(iter(program.frontend.explore(program, Seed.of(0), np.ones(1, bool))))
        path = program.frontend.replay(program, batch_run).path
    except Exception:  # the real run tells it better
        return False
    return not any(np.asarray(decision.value).dtype.kind == "f" for decision in path.decisions)


def recognise(model: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Frontend:
    """The front end for a program. One without any statement counts as NumPyro's."""
    loaded = loaded_libraries()
    library = _first_statement(model, args, kwargs)
    if library is None and loaded_libraries() != loaded:  # the program imports its library by itself
        library = _first_statement(model, args, kwargs)
    return _pyro_frontend() if library == "pyro" else cast(Frontend, numpyro_frontend)


def own_arrays(model: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
    """The arguments, with tensors in the place of NumPy's arrays if the program is Pyro's.

    For data of a file, of which nobody knows yet what kind of arrays the program takes.
    """

    def changed(change: Callable[[np.ndarray], Any]) -> tuple[Any, Any]:
        return jax.tree.map(
            lambda leaf: change(leaf) if isinstance(leaf, np.ndarray) else leaf, (args, kwargs)
        )

    frontend = recognise(model, *changed(np.ndarray.tolist))
    return (args, kwargs) if frontend is numpyro_frontend else changed(frontend.make_array)


@cache
def _pyro_frontend() -> Frontend:
    """Loaded when first needed, with what PyTorch loads when it first traces."""
    with undisturbed():
        frontend = import_module("pathmix.frontends.pyro")
        frontend.prepare()
    return cast(Frontend, frontend)


@contextmanager
def _pyro_undisturbed() -> Iterator[None]:
    """Without validation; modules may write into the parameter store before their first statement."""
    pyro = sys.modules["pyro"]
    store = pyro.get_param_store()
    with pyro.validation_enabled(False), store.scope(store.get_state()):
        yield


def _copied(leaf: Any) -> Any:
    """What a program may write into, before its first statement."""
    if isinstance(leaf, np.ndarray):
        return leaf.copy()
    torch = sys.modules.get("torch")
    return leaf.detach().clone() if torch is not None and isinstance(leaf, torch.Tensor) else leaf


def _first_statement(model: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    """The library of the first statement; None if there is none before the program ends or fails."""
    first: list[str] = []

    def stop_at(library: str) -> Callable[[str], None]:
        def stop(_: str) -> None:
            first.append(library)
            raise _Recognised

        return stop

    with one_program, ExitStack() as stack:
        torch = sys.modules.get("torch")
        if torch is not None:
            stack.enter_context(torch.random.fork_rng(devices=[]))
        for library in loaded_libraries():
            # Validation would end the program at a parameter that is told of better later.
            stack.enter_context(unvalidated() if library == "numpyro" else _pyro_undisturbed())
            stack.enter_context(watched(library, stop_at(library)))
        # A program may need its own library's arrays where the user gives lists, or NumPy's.
        made = [numpyro_frontend.adapt(taken((args, kwargs), jnp.asarray, "arrays"))]
        if torch is not None:
            made.append(taken((args, kwargs), torch.as_tensor, "arrays"))
        for arguments in ((args, kwargs), *made):
            given = jax.tree.map(_copied, arguments)
            try:
                model(*given[0], **given[1])
            except _Recognised:
                return first[0]
            except ModuleNotFoundError as error:
                if error.name in ("torch", "pyro"):
                    raise MissingExtraError("The program", error.name) from error
            except Exception:  # the real run tells it better
                continue
            return first[0] if first else None
    return None
