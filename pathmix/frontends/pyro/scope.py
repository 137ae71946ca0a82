"""What must hold while Pyro code runs under observation; everything is put back afterwards."""

from collections.abc import Iterator
from contextlib import contextmanager

import jax.numpy as jnp
import pyro
import torch

from pathmix.doors.torch import answerable
from pathmix.errors import ProgramError
from pathmix.frontends.pyro.precisions import recurrent_in_one_precision
from pathmix.frontends.statements import one_program, only
from pathmix.program.source import caller


@contextmanager
def frontend_scope() -> Iterator[None]:
    """One program at a time, in the engine's precision and without argument validation.

    The program sees the user's parameter store, and random state of its own; changes to either are
    forgotten.
    """
    store = pyro.get_param_store()
    with (
        one_program,
        pyro.validation_enabled(False),
        torch.random.fork_rng(devices=[]),
        store.scope(store.get_state()),
        answerable(_not_in_python),
        torch.compiler.set_stance("force_eager"),  # compiled code has no answers to what Python asks
        only("pyro"),
        recurrent_in_one_precision(),
        _default_dtype(torch.float64 if jnp.result_type(float) == jnp.float64 else torch.float32),
    ):
        yield


def _not_in_python(name: str) -> ProgramError:
    return ProgramError(
        f"The compiled {name!r} at {caller()} has look-ups by a tensor (`x[index]`), which PyTorch "
        "cannot trace there. Use what it was compiled from, without torch.jit."
    )


@contextmanager
def _default_dtype(dtype: torch.dtype) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)
