"""Learning: values of parameters at which the evidence is largest, found in rounds.

The slope of the log-evidence is the weighted sum of those of paths, and the slope of a path's own is a mean
over its posterior (Fisher's identity). So each round fits posteriors at the present values, and moves these
to the top of what the draws tell, no farther than they can be trusted.
"""

from collections.abc import Callable
from typing import Literal

from pathmix.allocation import Allocation, OnlineAllocation, SuccessiveHalving
from pathmix.engine.executables import Executables
from pathmix.engine.precision import engine_scope
from pathmix.methods.learning.remarks import remarked
from pathmix.methods.learning.rounds import State
from pathmix.methods.learning.setting import Setting
from pathmix.methods.resuming import Earlier, with_budget
from pathmix.posterior.posterior import Posterior
from pathmix.program.seeds import Seed

_ROUNDS = 40  # with a small budget
_WHOLE_ROUNDS = 3  # with all of it
_TIMES_SMALLER = 10
_LEAST_BUDGET = 1_000

# A run at some values of parameters, which goes on from an earlier one.
Run = Callable[[Setting, Earlier], Posterior]


def learn(how: Literal["learn", "per-path"], run: Run, earlier: Earlier, seed: Seed) -> Posterior:
    """The posterior at parameters that were learned, with a word on how that went.

    Ctrl-C ends it, with what was reached by then.
    """
    before, allocation = earlier.posterior, earlier.allocation
    state = State(how, seed, Executables())
    if before is not None:
        state.start_at(before)
    posterior, whole, searches = before, 0, before is not None
    while True:
        is_whole = state.settled or state.rounds >= _ROUNDS
        budget = allocation if is_whole else _quick(allocation)
        try:
            found = run(state.setting, Earlier(posterior, budget, searches=searches))
            posterior, searches = found, False
            state.take(posterior)
            whole += is_whole
            if posterior.interrupted:
                return remarked(posterior, state)
            with engine_scope(posterior._engine):
                state.look(posterior, is_whole=is_whole)
                if is_whole and (state.settled or whole == _WHOLE_ROUNDS):
                    state.find_flat()
                    return remarked(posterior, state)
                state.move()
        except KeyboardInterrupt:
            if posterior is None or posterior is before:
                raise
            return remarked(posterior, state.interrupted())


def _quick(allocation: Allocation) -> Allocation:
    """For a round that only shows where parameters should go."""
    budget = max(allocation.budget // _TIMES_SMALLER, min(_LEAST_BUDGET, allocation.budget))
    if isinstance(allocation, OnlineAllocation):  # which has its own idea of when to end
        return SuccessiveHalving(budget)
    return with_budget(allocation, budget)
