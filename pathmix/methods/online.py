"""Rounds of training with discovery in between, for allocations that are online."""

import time

import numpy as np

from pathmix.allocation import OnlineAllocation, Round
from pathmix.discovery.base import Rating
from pathmix.discovery.contenders import Exploration
from pathmix.engine.progress import Progress
from pathmix.methods.scouting import Scouting, problems
from pathmix.methods.strays import strays
from pathmix.posterior.weights import logsumexp
from pathmix.training.fit import PathFit
from pathmix.training.phases import Schedule, Workshop, optimise


def train_online(
    allocation: OnlineAllocation,
    exploration: Exploration[PathFit],
    scouting: Scouting,
    workshop: Workshop,
    schedule: Schedule,
    progress: Progress,
) -> None:
    """Every path is a candidate again in every round; new ones have had no iterations, and are favoured."""
    begun, rounds = time.monotonic(), list[Round]()
    while not workshop.executor.stopping.is_set():
        contenders = exploration.contenders
        fitting = problems(contenders)
        for one in fitting:
            one.work.dropped = False
        scouting.initialise([one for one in fitting if one.work.start is None and not one.work.was_set_aside])
        progress.stage(f"round {len(rounds) + 1}: {len(fitting)} problems")
        optimise(workshop, schedule, fitting, scouting.log_c, progress)
        workshop.in_turns([o for o in fitting if o.work.start is not None], lambda o: o.work.estimate_elbo())
        elbos = [one.work.elbo for one in contenders if np.isfinite(one.work.elbo)]
        rounds.append(Round(time.monotonic() - begun, logsumexp(elbos) if elbos else -np.inf))
        if not allocation.goes_on(rounds):
            return
        worth = {one.slp.path: one.work.elbo for one in contenders if np.isfinite(one.work.elbo)}
        ranked = sorted((o for o in fitting if o.slp.path in worth), key=lambda o: -worth[o.slp.path])
        exploration.again(Rating(worth, strays(workshop, ranked)))
