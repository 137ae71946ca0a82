"""What may not surround a call: transformations, handlers of the libraries, and a fork."""

import os
import sys
import threading
from importlib import import_module
from typing import Any

import jax

from pathmix.doors.jax import Tracer, has_started, is_transforming
from pathmix.errors import SurroundingsError
from pathmix.frontends.statements import active_handlers


def check_surroundings(call: str, arguments: Any = (), *, runs_program: bool = True) -> None:
    """Refuse what would end in a wrong number, a raw error or a process that hangs."""
    if _jax_died.is_set():
        raise SurroundingsError(
            f"{call} was called in a process that was forked from one which had already used JAX; JAX's "
            'threads do not survive a fork, and it would hang. Start processes with "spawn" or "forkserver" '
            '(multiprocessing.get_context("spawn")), or fork before JAX is first used.'
        )
    if transformer := _transformer(arguments):
        raise SurroundingsError(
            f"{call} was called inside a function that {transformer} transforms or traces. It computes with "
            "numbers and gives Python objects, so it cannot be compiled, differentiated or batched: call it "
            "outside, with concrete arguments, and use its result inside."
        )
    if runs_program and (handlers := active_handlers()):
        raise SurroundingsError(
            f"{call} was called inside {handlers}, which would see and change the statements of every run. "
            "Call it outside, and put handlers around the model instead: SDVI(handler(model, ...))."
        )


def _transformer(arguments: Any) -> str | None:
    if is_transforming() or any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(arguments)):
        return "JAX (jit, grad, vmap, scan, ...)"
    if "torch" in sys.modules and import_module("pathmix.doors.torch").is_traced():
        return "PyTorch (vmap, grad, make_fx, jit.trace, ...)"
    return None


def _left_behind() -> bool:
    """Whether JAX is initialised but its threads are not there: a fork, before this module was loaded."""
    if not has_started() or not os.path.isdir("/proc/self/task"):
        return False
    return len(os.listdir("/proc/self/task")) <= threading.active_count()


def _note_fork() -> None:
    if has_started():
        _jax_died.set()


_jax_died = threading.Event()  # in this process, or in one that it was forked from
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)
    if _left_behind():
        _jax_died.set()
