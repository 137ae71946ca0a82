"""Remarks: what a posterior says of the parameters that were learned for it."""

from dataclasses import replace

import numpy as np

from pathmix.methods.learning.rounds import State
from pathmix.posterior.posterior import Posterior

_PER_PATH = (
    "Every path has its own values of parameters (`path.parameters`), at which its evidence is largest. "
    "Weights compare these evidences, which favours paths with more parameters."
)


def remarked(posterior: Posterior, state: State) -> Posterior:
    """The posterior, with what is to be said of its parameters."""
    names = sorted({name for path in posterior.paths for name in path.parameters})
    rounds = f"{state.rounds} round" + ("s" if state.rounds > 1 else "")
    notes = [f"Parameters were learned, in {rounds}: {', '.join(names)}."]
    if not names:
        notes = [f'There is nothing to learn (parameters="{state.how}"): the program has no param statement.']
    elif state.how == "per-path":
        notes.append(_PER_PATH)
    for name, value in state.flat.items():
        shown = np.array2string(np.asarray(value), precision=3, threshold=8)
        notes.append(
            f"The evidence hardly changes with {name} around {shown}: it is near a bound of its "
            "constraint, or the data do not tell it."
        )
    flaws = posterior._flaws
    if state.how == "per-path" and names and len(posterior.paths) > 1:
        flaws = (*flaws, "Weights compare paths at their own best parameters: they are no probabilities.")
    if not state.settled:
        flaws = (
            *flaws,
            f"Parameters have not settled after {rounds}: their evidence still rises. sdvi.resume(posterior) "
            "goes on from here.",
        )
    return replace(
        posterior,
        notes=(*notes, *posterior.notes),
        interrupted=posterior.interrupted or state.was_interrupted,
        _flaws=flaws,
        _parameters=state.how,
        _program=posterior._bound.with_parameters(posterior._bound.params),
    )
