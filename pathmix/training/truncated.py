"""A trained guide as a component of the posterior."""

from functools import partial

import jax

from pathmix.engine.executables import Executables
from pathmix.engine.noise import noise_size
from pathmix.guides.base import Guide, Params
from pathmix.posterior.compiled import Function, compiled, rows_of
from pathmix.posterior.components import TruncatedGuide
from pathmix.target.target import Target
from pathmix.training.compiled import make_draw, make_log_prob


def truncated_guide(
    target: Target,
    guide: Guide,
    params: Params,
    executables: Executables,
    label: str,
    *,
    acceptance: float,
    weighed: bool,
    tries: int,
) -> TruncatedGuide:
    """With `weighed`, some draws have zero density, and are rejected too."""
    rows, width = rows_of(target), guide.noise_size(target.dim)
    noise = jax.ShapeDtypeStruct((noise_size(rows * width),), jax.dtypes.canonicalize_dtype(float))
    parts = compiled(
        target,
        executables,
        params,
        noise,
        Function(("draw", guide, weighed), partial(make_draw, target, guide, rows, weighed=weighed)),
        Function(("log_prob", guide), partial(make_log_prob, target, guide)),
    )
    return TruncatedGuide(parts, width, label, acceptance, tries)
