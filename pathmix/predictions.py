"""Observed sites, simulated at latent values that are already drawn."""

import numpy as np

from pathmix.draws import Piece
from pathmix.frontends.wishes import Wishes
from pathmix.program import Program
from pathmix.seeds import Seed

_BATCH = 128  # of runs of the program


def simulate(program: Program, wishes: Wishes, seed: Seed, rows: np.ndarray) -> list[Piece]:
    """Observed sites of draws in these rows of a result. New arguments may lead draws of one path apart."""
    pieces: list[Piece] = []
    for start in range(0, len(rows), _BATCH):
        # A batch that is not full is filled up by repetition: one batch size, compiled once.
        chunk = np.arange(start, start + _BATCH) % len(rows)
        wanted = np.arange(_BATCH) < len(rows) - start
        for execution in program.frontend.explore(
            program, seed.child(start), wanted, wishes=wishes.rows(chunk)
        ):
            done = execution.followed & wanted
            observed = {name: values[done] for name, values in execution.observed.items()}
            pieces.append((rows[chunk[done]], observed))
    return pieces
