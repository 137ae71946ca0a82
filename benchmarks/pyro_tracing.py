"""What a run of a Pyro program costs where pathmix records it, and where it traces it, against Pyro itself.

The peer is what Pyro needs for one run: `poutine.trace(model).get_trace()` for recording, and with
`log_prob_sum()` for the trace of a path. All sites are drawn on both sides, and discrete ones then given the
values of the path. The floors are the same runs of Pyro while PyTorch is asked to tell of every function (as
a recorder must, which is to see every `if`), and of every operation without writes as well (as a tracer
must), and nothing is done with what it tells: nobody who follows a run by these means takes less.
Measurements alternate; ratios are of medians, to Pyro.

    python -m benchmarks.pyro_tracing [--repeats 20]
"""

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyro
import torch
from pyro import poutine
from pyro.poutine.messenger import Messenger
from torch.overrides import TorchFunctionMode

from benchmarks import pyro_programs
from benchmarks.pyro_eager import PERIODIC_TIMES_LINEAR_PLUS_RATIONAL, clusters, series
from experiments import two_branches
from pathmix.doors.torch import DispatchMode, functionalized
from pathmix.engine.precision import Engine, engine_scope
from pathmix.frontends.pyro.record import record
from pathmix.frontends.pyro.replay import replay
from pathmix.frontends.pyro.scope import frontend_scope
from pathmix.frontends.recognise import bind
from pathmix.program.seeds import Seed
from pathmix.program.wishes import Wishes


@dataclass(frozen=True)
class Case:
    name: str
    model: Callable
    data: Callable
    pinned: dict  # values of the discrete sites on the path


CASES = [
    Case("two branches", two_branches.model, lambda: (torch.tensor(2.0),), {}),
    Case(
        "ten coins", pyro_programs.coins, lambda: (10, torch.tensor(1.0)), {f"coin_{j}": 1 for j in range(10)}
    ),
    Case("mixture, D=100, K=5", pyro_programs.mixture, clusters, {"num_clusters": 4}),
    Case(
        "GP kernel, three leaves",
        pyro_programs.gaussian_process,
        series,
        PERIODIC_TIMES_LINEAR_PLUS_RATIONAL,
    ),
]


class _Forced(Messenger):
    """Draws all sites, and gives some of them other values: the runs of one path."""

    def __init__(self, values: dict) -> None:
        super().__init__()
        self.values = {name: torch.tensor(float(value)) for name, value in values.items()}

    def _pyro_post_sample(self, msg):
        if msg["name"] in self.values:
            msg["value"] = self.values[msg["name"]]


class _Functions(TorchFunctionMode):
    """Is told of every function, and does nothing."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


class _Operations(DispatchMode):
    """Is told of every operation, and does nothing."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def told_of_functions(function: Callable) -> None:
    with _Functions():
        function()


def told_of_operations(function: Callable) -> None:
    with _Operations():
        functionalized(lambda: told_of_functions(function))


def timed(function: Callable) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def measured(case: Case, repeats: int) -> list[float]:
    """Median seconds of a run in Pyro, its floor, a recorded one; with the density, its floor, a trace."""
    args = case.data()
    program = bind(case.model, args)
    peer = _Forced(case.pinned)(case.model)
    rows = {name: np.full(1, value) for name, value in case.pinned.items()}
    wishes = Wishes(rows)
    (recorded,) = list(program.frontend.explore(program, Seed.of(0), np.ones(1, bool), wishes=wishes))
    one = wishes.row(0)

    def run() -> None:
        poutine.trace(peer).get_trace(*program.args)

    def density() -> None:
        poutine.trace(peer).get_trace(*program.args).log_prob_sum()

    with frontend_scope():
        sides = [
            run,
            lambda: told_of_functions(run),
            lambda: record(program, 1, one),
            density,
            lambda: told_of_operations(density),
            lambda: replay(program, recorded),
        ]
        for side in sides:
            side()
        times = [[timed(side) for side in sides] for _ in range(repeats)]
    return [statistics.median(column) for column in zip(*times, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=20)
    repeats = parser.parse_args().repeats
    torch.set_default_dtype(torch.float64)
    pyro.enable_validation(False)
    half = "".join(f"{title:>{width}}" for title, width in (("floor", 8), ("{}", 10), ("ratio", 8)))
    print(f"{'path':<26}{'run':>10}{half.format('recorded')}{'density':>12}{half.format('traced')}")
    for case in CASES:
        with engine_scope(Engine("float64", cache=False)):
            seconds = measured(case, repeats)
        halves = [seconds[:3], seconds[3:]]
        cells = [f"{a * 1e3:>7.2f} ms{b / a:>8.1f}{c * 1e3:>7.2f} ms{c / a:>8.1f}" for a, b, c in halves]
        print(f"{case.name:<26}{'  '.join(cells)}")


if __name__ == "__main__":
    main()
