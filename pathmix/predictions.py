"""Observed sites, simulated at latent values that are already drawn."""

import numpy as np

from pathmix.draws import Piece
from pathmix.frontends.wishes import Wishes
from pathmix.program import Program
from pathmix.runs import runs
from pathmix.seeds import Seed


def simulate(program: Program, wishes: Wishes, seed: Seed, rows: np.ndarray) -> list[Piece]:
    """Observed sites of draws in these rows of a result."""
    return [
        (rows[own], {name: values[done] for name, values in execution.observed.items()})
        for own, done, execution in runs(program, wishes, seed, len(rows))
    ]
