"""Explore: the paths that a batch of seeds takes, one run of the program for each that is not foreseen."""

import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

import numpy as np

from pathmix.errors import UnsupportedSiteError
from pathmix.frontends.patience import Patience
from pathmix.frontends.pyro.elsewhere import Ahead
from pathmix.frontends.pyro.foresight import Alike, Foresight
from pathmix.frontends.pyro.ownnames import has_own_names
from pathmix.frontends.pyro.record import record
from pathmix.frontends.pyro.run import LeftPath, Run
from pathmix.frontends.pyro.scope import frontend_scope
from pathmix.frontends.pyro.undecided import regrouped
from pathmix.frontends.undecided import too_much
from pathmix.program.batch_run import BatchRun
from pathmix.program.failures import FailedRun, OnFailure, tell
from pathmix.program.path import Path
from pathmix.program.program import Have, Program
from pathmix.program.seeds import Seed
from pathmix.program.wishes import Wishes

# A forced draw costs a whole run, and so many tell well enough where a guide should start.
_ENOUGH_FORCED = 20

_Runs = dict[int, Run]  # by the position of the seed in its batch


def explore(
    program: Program,
    seed: Seed,
    wanted: np.ndarray,
    *,
    wishes: Wishes = Wishes(),
    have: Have | None = None,
    on_failure: OnFailure | None = None,
) -> Iterator[BatchRun]:
    """See `Frontend.explore`."""
    words = seed.words(len(wanted))
    groups: dict[Path, _Runs] = {}
    foresight, patience = Foresight(), Patience(program.limits, on_failure)
    plain, ahead = wishes == Wishes(), Ahead(program)
    if has_own_names(program.model):
        program.watched.add("functions")
    with frontend_scope():
        left = [int(position) for position in np.flatnonzero(wanted)]
        while left:
            position = left.pop(0)
            word = int(words[position])
            run = foresight.run(word) if plain else "open"
            if not isinstance(run, Run):
                learns = foresight if run == "unknown" else None
                bounded = replace(program, limits=patience.limits)
                if (run := ahead.run(position)) is None:
                    begun = time.perf_counter()
                    run = record(bounded, word, wishes.row(position), foresight=learns)
                    ahead.took(time.perf_counter() - begun)
                if ahead.pays(len(left)):
                    unsettled = [p for p in left if not plain or foresight.run(int(words[p])) == "open"]
                    ahead.ask({p: (int(words[p]), wishes.row(p)) for p in unsettled}, bounded)
            if isinstance(run, Run):
                patience.ended(len(run.site_places), 1)
                groups.setdefault(run.path, {})[position] = run
            else:
                run = replace(run, followed=np.arange(len(wanted)) == position, ended=patience.runs)
                if not patience.puts_off(run):
                    tell(run, on_failure)
            for waiting in patience.again(is_last=not left):
                if patience.has_room(waiting):
                    left.append(int(np.argmax(waiting.followed)))
                else:
                    tell(waiting, on_failure)

    def gather(path: Path, runs: _Runs) -> BatchRun:
        return _execution(path, runs, {}, len(wanted), len(runs))

    def leave_out(error: UnsupportedSiteError, runs: _Runs) -> None:
        tell(too_much(error, _mask(runs, len(wanted))), on_failure)

    if wishes.simulate is None:
        regroup = regrouped(program, groups, gather, leave_out if wishes.proposed else None)
    else:  # nobody asks which paths predictions take
        regroup = ((path, runs, None) for path, runs in groups.items())
    for path, followers, made in regroup:
        fills_up = have is not None and path.pinned and path.has_free_sites
        tries = _ENOUGH_FORCED - have(path) - len(followers) if have is not None and fills_up else 0
        others = [position for position in range(len(wanted)) if position not in followers]
        others = others[: max(tries, 0)]
        forced = _forced(program, path, words, others, foresight)
        foreseen = sum(run.is_foreseen for run in (*followers.values(), *forced.values()))
        done = _execution(path, followers, forced, len(wanted), len(followers) + len(others) - foreseen)
        yield done if made is None else replace(done, summed=made.summed)


def _forced(
    program: Program, path: Path, words: np.ndarray, positions: Sequence[int], foresight: Foresight
) -> _Runs:
    """Runs whose discrete sites are forced to the path; those that leave it all the same are dropped."""
    pinned = dict(path.pinned)
    runs: _Runs = {}
    alike: list[Alike] = []
    if not positions:
        return runs
    with frontend_scope():
        for number, position in enumerate(positions):
            word = int(words[position])
            try:
                run = foresight.run(word, pinned)
                if not isinstance(run, Run) and alike:
                    run = alike[0].other(word)
                if not isinstance(run, Run):  # the first tells whether others will be alike
                    learns = alike if number == 0 else None
                    run = record(program, word, Wishes(), follow=path, alike=learns)
            except LeftPath:
                continue
            if not isinstance(run, FailedRun):
                runs[position] = run
    return runs


def _execution(path: Path, followers: _Runs, forced: _Runs, size: int, runs: int) -> BatchRun:
    leader = next(iter(followers.values()))
    inside = followers | forced
    return BatchRun(
        path=path,
        continuous=leader.continuous,
        sources=tuple(place.source() for place in leader.places),
        site_sources={name: place.source() for name, place in leader.site_places.items()},
        values=_gathered({position: run.values for position, run in inside.items()}, size),
        followed=_mask(followers, size),
        inside=_mask(inside, size),
        observed=_gathered({position: run.observed for position, run in followers.items()}, size),
        runs=runs,
        invalid={
            said: _mask([position for position, run in followers.items() if said in run.invalid], size)
            for said in dict.fromkeys(said for run in followers.values() for said in run.invalid)
        },
    )


def _gathered(runs: dict[int, dict[str, np.ndarray]], size: int) -> dict[str, np.ndarray]:
    """Values by site, in the rows of their runs. Other rows are left at zero; nobody reads them."""
    result = {}
    for name, example in next(iter(runs.values())).items():
        result[name] = np.zeros((size, *example.shape), example.dtype)
        result[name][list(runs)] = [values[name] for values in runs.values()]
    return result


def _mask(runs: Collection[int], size: int) -> np.ndarray:
    return np.isin(np.arange(size), list(runs))
