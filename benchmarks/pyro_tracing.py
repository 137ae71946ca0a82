"""What a run of a Pyro program costs where pathmix records it, and where it traces it, against Pyro itself.

The peer is what Pyro needs for one run: `poutine.trace(model).get_trace()` for recording, and with
`log_prob_sum()` for the trace of a path. All sites are drawn on both sides, and discrete ones then given the
values of the path. Measurements alternate; ratios are of medians.

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

from benchmarks import pyro_programs
from benchmarks.pyro_eager import PERIODIC_TIMES_LINEAR_PLUS_RATIONAL, clusters, series
from experiments import two_branches
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


def timed(function: Callable) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def measured(case: Case, repeats: int) -> list[float]:
    """Median seconds of a run in Pyro, a recorded one, one with its density in Pyro, and a traced one."""
    args = case.data()
    program = bind(case.model, args)
    peer = _Forced(case.pinned)(case.model)
    rows = {name: np.full(1, value) for name, value in case.pinned.items()}
    wishes = Wishes(rows)
    (run,) = list(program.frontend.explore(program, Seed.of(0), np.ones(1, bool), wishes=wishes))
    one = wishes.row(0)
    with frontend_scope():
        sides = [
            lambda: poutine.trace(peer).get_trace(*program.args),
            lambda: record(program, 1, one),
            lambda: poutine.trace(peer).get_trace(*program.args).log_prob_sum(),
            lambda: replay(program, run),
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
    print(f"{'path':<26}{'run':>10}{'recorded':>11}{'ratio':>8}{'density':>11}{'traced':>10}{'ratio':>8}")
    for case in CASES:
        with engine_scope(Engine("float64", cache=False)):
            run, recorded, density, traced = measured(case, repeats)
        row = f"{case.name:<26}{run * 1e3:>7.2f} ms{recorded * 1e3:>8.2f} ms{recorded / run:>8.1f}"
        print(f"{row}{density * 1e3:>8.2f} ms{traced * 1e3:>7.2f} ms{traced / density:>8.1f}")


if __name__ == "__main__":
    main()
