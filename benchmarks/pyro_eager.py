"""One gradient step of a compiled path against the same step in eager Pyro.

Both fit a mean-field normal guide to one path of an unmodified Pyro program, in float64, with the same
number of particles and Adam: pathmix in its compiled loop, Pyro with `SVI` and `Trace_ELBO`. Compilation
is not counted (the third column says what it took); the peer's guide is as lean as Pyro lets one write
it. Measurements alternate; the ratio is of medians.

    python -m benchmarks.pyro_eager [--repeats 5]
"""

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import optax
import pyro
import pyro.distributions as dist
import torch
from pyro import poutine
from pyro.infer import SVI, Trace_ELBO
from torch.distributions import biject_to

from benchmarks import pyro_programs
from experiments import two_branches
from pathmix.engine.executables import Executables
from pathmix.engine.precision import Engine, engine_scope
from pathmix.engine.requests import answered
from pathmix.frontends.recognise import bind
from pathmix.guides import MeanField
from pathmix.program.seeds import Seed
from pathmix.program.wishes import Wishes
from pathmix.regions.region import read_region
from pathmix.target.target import make_target
from pathmix.training.fit import PathFit
from pathmix.training.options import TrainingOptions

DRAWS = 64
ENGINE = Engine("float64", cache=False)  # what compilation takes is told


def one_number():
    return (torch.tensor(2.0),)


def clusters():
    pyro.set_rng_seed(0)
    means = 10**0.5 * torch.randn(5, 100)
    y = means[torch.randint(5, (1_000,))] + 0.1 * torch.randn(1_000, 100)
    return (y / y.std(),)


def series():
    """As long as the airline passengers' training series."""
    x = torch.linspace(0, 0.9, 130)[:, None]
    return x, torch.sin(70 * x[:, 0]) * x[:, 0] + 2 * x[:, 0] - 1


@dataclass(frozen=True)
class Case:
    name: str
    model: Callable
    data: Callable
    pinned: dict  # values of the discrete sites on the path
    last_site: str  # that the path draws
    particles: int
    steps: tuple[int, int]  # of pathmix and of Pyro in one measurement


PERIODIC_TIMES_LINEAR_PLUS_RATIONAL = {
    "k.type": 5, "k.l.type": 4, "k.l.l.type": 2, "k.l.r.type": 3, "k.r.type": 1,
}  # fmt: skip
CASES = [
    Case("two branches", two_branches.model, lambda: (torch.tensor(2.0),), {}, "z2", 10, (10_000, 50)),
    Case("mixture, D=100, K=5", pyro_programs.mixture, clusters, {"num_clusters": 4}, "mu_4", 10, (40, 5)),
    Case(
        "GP kernel, three leaves",
        pyro_programs.gaussian_process,
        series,
        PERIODIC_TIMES_LINEAR_PLUS_RATIONAL,
        "noise",
        1,
        (200, 20),
    ),
]


class Compiled:
    """The path in pathmix's training loop."""

    def __init__(self, case, args):
        program = bind(case.model, args)
        given = {name: np.full(DRAWS, value) for name, value in case.pinned.items()}
        found = program.frontend.explore(program, Seed.of(0), np.ones(DRAWS, bool), wishes=Wishes(given))
        batch_run = next(run for run in found if run.path.addresses[-1] == case.last_site)
        slp = program.frontend.replay(program, batch_run)
        draws = {name: values[batch_run.followed] for name, values in batch_run.values.items()}
        target = make_target(slp, read_region(slp, draws), draws)
        options = TrainingOptions(optax.adam(0.01), case.particles, 100)
        self.slp = slp
        self.fit = PathFit(target, MeanField(), "reparam", options, Executables(), Seed.of(1))
        answered(self.fit.initialise(draws), self.fit.executables.answer)

    def steps(self, count):
        answered(self.fit.train(count, 0.0, lambda _: None), self.fit.executables.answer)


class Eager:
    """The path in Pyro: discrete sites conditioned on, and a guide that stays inside the path."""

    def __init__(self, case, args, slp, region):
        pyro.clear_param_store()
        pinned = {site.name: torch.as_tensor(site.pinned) for site in slp.sites if site.pinned is not None}
        conditioned = poutine.condition(case.model, data=pinned)
        trace = poutine.trace(poutine.condition(conditioned, data=self._inside(slp, region))).get_trace(*args)
        self.args = args
        sites = []
        for site in slp.free:
            support = trace.nodes[site.name]["fn"].support
            if site.name in region.bounds:
                support = dist.constraints.greater_than(region.bounds[site.name][0].lower)
            sites.append((site.name, site.shape, biject_to(support)))

        def guide(*_):
            for name, shape, bijection in sites:
                location = pyro.param(f"{name}.loc", lambda shape=shape: torch.zeros(shape))
                scale = pyro.param(
                    f"{name}.scale",
                    lambda shape=shape: torch.full(shape, 0.1),
                    constraint=dist.constraints.softplus_positive,
                )
                normal = dist.Normal(location, scale).to_event(len(shape))
                pyro.sample(name, dist.TransformedDistribution(normal, [bijection]))

        elbo = Trace_ELBO(num_particles=case.particles)
        self.svi = SVI(conditioned, guide, pyro.optim.Adam({"lr": 0.01}), elbo)

    @staticmethod
    def _inside(slp, region):
        return {site.name: torch.ones(site.shape) for site in slp.free if site.name in region.bounds}

    def steps(self, count):
        for _ in range(count):
            self.svi.step(*self.args)


def timed(side, count):
    start = time.perf_counter()
    side.steps(count)
    return (time.perf_counter() - start) / count


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    torch.set_default_dtype(torch.float64)
    print(f"{'path':<26}{'pathmix':>12}{'eager Pyro':>14}{'compile':>12}{'ratio':>9}")
    for case in CASES:
        args = case.data()
        with engine_scope(ENGINE):
            begin = time.perf_counter()
            compiled = Compiled(case, args)
            compiled.steps(1)
            compilation = time.perf_counter() - begin
        eager = Eager(case, args, compiled.slp, compiled.fit.target.region)
        eager.steps(2)
        times = []
        for _ in range(repeats):
            with engine_scope(ENGINE):
                fast = timed(compiled, case.steps[0])
            times.append((fast, timed(eager, case.steps[1])))
        fast, slow = (statistics.median(column) for column in zip(*times, strict=True))
        row = f"{case.name:<26}{fast * 1e3:>9.3f} ms{slow * 1e3:>11.2f} ms{compilation:>10.1f} s"
        print(f"{row}{slow / fast:>8.1f}x")


if __name__ == "__main__":
    main()
