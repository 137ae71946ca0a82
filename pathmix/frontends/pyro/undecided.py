"""Runs of a Pyro program that differ only in discrete values which decide nothing: one path, summed over."""

from collections.abc import Callable, Iterator

from pathmix.errors import UnsupportedSiteError
from pathmix.frontends.pyro.replay import deciding_sites, replay
from pathmix.frontends.pyro.run import Run
from pathmix.frontends.undecided import undivided
from pathmix.program.batch_run import BatchRun
from pathmix.program.path import Path
from pathmix.program.program import Program

Runs = dict[int, Run]  # by the position of the seed in its batch
Gather = Callable[[Path, Runs], BatchRun]  # a run for all of them
LeaveOut = Callable[[UnsupportedSiteError, Runs], None]

_OFTEN = 16  # courses, after which nobody asks about the sites of a place


def regrouped(
    program: Program, groups: dict[Path, Runs], gather: Gather, leave_out: LeaveOut | None
) -> Iterator[tuple[Path, Runs, BatchRun | None]]:
    """Groups of runs by path, with a batch run where one was made already.

    Paths with too much to sum are left out, if somebody wants to know of that.
    """
    merged: dict[Path, dict[Path, Runs]] = {}
    for path, runs in groups.items():
        merged.setdefault(_merged(program, path, runs, gather), {})[path] = runs
    for path, parts in merged.items():
        together = {position: run for runs in parts.values() for position, run in runs.items()}
        if not path.summed:
            yield path, together, None
            continue
        try:
            found = undivided(program, gather(path, together), replay)
        except UnsupportedSiteError as error:
            if leave_out is None:
                raise
            leave_out(error, together)
            continue
        if found is not None:
            yield path, together, found
        else:
            yield from ((own, runs, None) for own, runs in parts.items())


def _merged(program: Program, path: Path, runs: Runs, gather: Gather) -> Path:
    """A path without the values of the sites that decide nothing; what a run does tells which they are.

    Where all sites of a place in the program had a say so far, the next ones are taken to have one: to keep a
    value makes more paths, and none that is wrong.
    """
    leader, habits = next(iter(runs.values())), program.always_deciding
    undecided = tuple(
        name
        for name, _ in path.pinned
        if name in leader.scalars
        and name not in leader.looked_at
        and habits.get(leader.site_places[name], 0) < _OFTEN
    )
    if not undecided:
        return path
    course = path.without(undecided)
    if course not in program.deciding:
        try:
            program.deciding[course] = deciding_sites(program, gather(course, runs))
        except Exception:  # said where the path's program is made
            program.deciding[course] = frozenset(undecided)
        else:
            for name in undecided:
                place = leader.site_places[name]
                always = name in program.deciding[course] and habits.get(place, 0) >= 0
                habits[place] = habits.get(place, 0) + 1 if always else -1
    return path.without(tuple(name for name in undecided if name not in program.deciding[course]))
