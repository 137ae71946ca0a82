"""Draws of a trained guide, in the coordinates of the program."""

import math
from functools import partial
from typing import Any

import jax
import numpy as np

from pathmix.engine.executables import Executables
from pathmix.engine.noise import noise_size, normals
from pathmix.guides.base import Guide, Params
from pathmix.program.seeds import Seed
from pathmix.program.values import SiteRows
from pathmix.target.target import Outcome, Target
from pathmix.training.compiled import make_draw


def draw(
    executables: Executables,
    target: Target,
    guide: Guide,
    params: Params,
    seed: Seed,
    count: int,
) -> tuple[SiteRows, np.ndarray]:
    """Sites of `count` draws of a guide before truncation, and which are inside the region."""
    # A few sizes for all counts, since every size is compiled.
    rounded = 2 ** max(6, math.ceil(math.log2(count)))
    size = target.formula.rows_at_once(rounded)
    noise = noise_size(size * guide.noise_size(target.dim))
    key = ("draw", target.site_structure, guide, size, noise)
    make = partial(make_draw, target, guide, size, weighed=False)
    parts: list[Outcome] = [
        executables.call(
            key, make, params, normals(seed.child(number), noise), target.arguments, target.site_graph.consts
        )
        for number in range(-(-rounded // size))
    ]
    rows: Any = jax.tree.map(lambda *columns: np.concatenate(columns)[:count], *parts)
    return target.named(rows), rows.inside
