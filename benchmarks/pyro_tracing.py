"""What a run of a Pyro program costs where pathmix records it, and where it traces it, against Pyro itself.

The peer is what Pyro needs for one run, as it comes, with its checks of parameters and values, which pathmix
makes itself: `poutine.trace(model).get_trace()` for recording, and with `log_prob_sum()` for the trace of a
path. All sites are drawn on both sides, and discrete ones then given the values of the path. The floors are
the same runs of Pyro while PyTorch is asked to tell of every function (as a recorder is that needs more than
the methods which ask), and of every operation without writes as well (as a tracer must), and nothing is done
with what it tells: nobody who follows a run by these means takes less. A path is traced in two steps, of
which the first is shown by itself: its operations are written down, then read by JAX. The floor of both adds
what JAX needs to read the finished graph, which is its own language. Exploring is what users have of
recording: so many prior runs, those that are foreseen included, against as many in Pyro. Measurements
alternate, with one thread of PyTorch; ratios are of medians, to Pyro.

    python -m benchmarks.pyro_tracing [--repeats 20] [--runs 200]
"""

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import jax
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
from pathmix.frontends.pyro.replay import repeats as written_down
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
    """Seconds of the processor: other work on the machine does not count."""
    start = time.thread_time()
    function()
    return time.thread_time() - start


def measured(case: Case, repeats: int) -> list[float]:
    """Medians of a run in Pyro, its floor, a recorded one; with the density, two floors, a trace's two."""
    args = case.data()
    program = bind(case.model, args)
    peer = _Forced(case.pinned)(case.model)
    rows = {name: np.full(1, value) for name, value in case.pinned.items()}
    wishes = Wishes(rows)
    (recorded,) = list(program.frontend.explore(program, Seed.of(0), np.ones(1, bool), wishes=wishes))
    one, slp = wishes.row(0), replay(program, recorded)

    def run() -> None:
        with pyro.validation_enabled():
            poutine.trace(peer).get_trace(*program.args)

    def density() -> None:
        with pyro.validation_enabled():
            poutine.trace(peer).get_trace(*program.args).log_prob_sum()

    shapes = [variable.aval for variable in slp.graph.inputs]

    def read() -> None:
        jax.make_jaxpr(lambda *inputs: slp.graph(slp.graph.consts, inputs))(*shapes)

    def told_of_operations_and_read() -> None:
        told_of_operations(density)
        read()

    with frontend_scope():
        sides = [
            run,
            lambda: told_of_functions(run),
            lambda: record(program, 1, one),
            density,
            lambda: told_of_operations(density),
            told_of_operations_and_read,
            lambda: written_down(program, recorded, slp),
            lambda: replay(program, recorded),
        ]
        for side in sides:
            side()
        times = [[timed(side) for side in sides] for _ in range(repeats)]
    return [statistics.median(column) for column in zip(*times, strict=True)]


def explored(case: Case, runs: int, repeats: int) -> tuple[float, float, int]:
    """Median seconds of so many runs in Pyro, and explored; how many of these the program made."""
    args = case.data()
    made, times = 0, []
    for repeat in range(repeats + 1):
        program = bind(case.model, args)

        def plainly(program=program) -> None:
            with pyro.validation_enabled():
                for _ in range(runs):
                    poutine.trace(case.model).get_trace(*program.args)

        def exploring(program=program, repeat=repeat) -> None:
            nonlocal made
            found = program.frontend.explore(program, Seed.of(repeat), np.ones(runs, bool))
            made = sum(batch.runs for batch in found)

        with frontend_scope():
            times.append((timed(plainly), timed(exploring)))
    plain, own = zip(*times[1:], strict=True)  # the first has much to load
    return statistics.median(plain), statistics.median(own), made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--runs", type=int, default=200)
    options = parser.parse_args()
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    print(
        f"{'path':<26}{'run':>10}{'floor':>8}{'recorded':>10}{'density':>14}{'floor':>8}{'written down':>14}"
        f"{'floor':>8}{'traced':>8}"
    )
    for case in CASES:
        with engine_scope(Engine("float64", cache=False)):
            run, told, recorded, density, told_more, read_too, written, traced = measured(
                case, options.repeats
            )
        print(
            f"{case.name:<26}{run * 1e3:>7.2f} ms{told / run:>8.1f}{recorded / run:>10.1f}"
            f"{density * 1e3:>11.2f} ms{told_more / density:>8.1f}{written / density:>14.1f}"
            f"{read_too / density:>8.1f}{traced / density:>8.1f}"
        )
    print(f"\n{'prior runs':<26}{'in Pyro':>10}{'explored':>12}{'ratio':>8}{'made':>8}")
    for case in CASES:
        with engine_scope(Engine("float64", cache=False)):
            plain, own, made = explored(case, options.runs, max(options.repeats // 5, 1))
        each = 1e3 / options.runs
        print(f"{case.name:<26}{plain * each:>7.2f} ms{own * each:>9.2f} ms{own / plain:>8.1f}{made:>8}")


if __name__ == "__main__":
    main()
