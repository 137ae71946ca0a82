"""A trained guide as a component of the posterior."""

from functools import partial

import jax

from pathmix.engine.executables import Executables
from pathmix.engine.noise import noise_size
from pathmix.guides.base import Guide, Params
from pathmix.posterior.compiled import Function, compiled, rows_of
from pathmix.posterior.components import Compiled, TruncatedGuide
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
    width = guide.noise_size(target.dim)

    def make() -> Compiled:
        rows = rows_of(target)
        return compiled(
            target,
            executables,
            params,
            jax.ShapeDtypeStruct((noise_size(rows * width),), jax.dtypes.canonicalize_dtype(float)),
            Function(("draw", guide, weighed), partial(make_draw, target, guide, rows, weighed=weighed)),
            Function(("log_prob", guide), partial(make_log_prob, target, guide)),
        )

    slp = target.slp
    return TruncatedGuide(slp.outline, target.inert, slp, make, width, label, acceptance, tries)
