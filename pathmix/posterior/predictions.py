"""Observed sites at latent values that are already drawn: simulated, or as they are."""

import numpy as np

from pathmix.posterior.draws import Piece
from pathmix.program.program import Program
from pathmix.program.runs import runs
from pathmix.program.seeds import Seed
from pathmix.program.values import SiteRows
from pathmix.program.wishes import Wishes


def observed_data(program: Program, latent: SiteRows) -> SiteRows:
    """The values of the observed sites of a run with these latent ones, which have one row."""
    told = {}
    for _, done, batch_run in runs(program, Wishes(latent, complete=True, data=True), Seed.of(0), 1):
        told = {name: values[done][0] for name, values in batch_run.observed.items()}
    return told


def simulate(program: Program, wishes: Wishes, seed: Seed, rows: np.ndarray, latent: SiteRows) -> list[Piece]:
    """Observed and deterministic sites of draws in these rows of a result, beside the latent ones."""
    return [
        (
            rows[own],
            {name: values[own] for name, values in latent.items()}
            | {name: values[done] for name, values in batch_run.observed.items()},
        )
        for own, done, batch_run in runs(program, wishes, seed, len(rows))
    ]
