"""The front end for NumPyro programs."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pathmix.errors import PathmixError
from pathmix.frontends.numpyro.explore import explore as explore
from pathmix.frontends.numpyro.replay import replay as replay
from pathmix.frontends.numpyro.replay import whole
from pathmix.program.batch_run import BatchRun
from pathmix.program.program import Program
from pathmix.program.same import same
from pathmix.program.slp import StraightLineProgram


def adapt(arguments: Any) -> Any:
    """NumPy data as JAX arrays, as NumPyro's own inference does: they can be indexed by minibatches."""
    return jax.tree.map(_as_jax, arguments)


make_array = jnp.asarray


def as_guide(model: Any, shapes: Any, draw: Any) -> Any:
    """NumPyro's inference compiles models and guides, so it has no place for random structure."""
    del model, shapes, draw
    raise PathmixError("as_pyro_guide() is for Pyro models; this posterior is of a NumPyro model.")


def repeats(program: Program, batch_run: BatchRun, slp: StraightLineProgram) -> bool:
    """Whether the program gives the same graph once more."""
    graph = slp.graph if slp.summation is None else slp.summation.traced
    return same(graph, whole(program, replace(batch_run, trace=None)).graph)


def _as_jax(leaf: Any) -> Any:
    if isinstance(leaf, np.ndarray) and np.issubdtype(leaf.dtype, np.number):
        return jnp.asarray(leaf)
    return leaf
