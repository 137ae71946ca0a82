"""Halving without barriers: the best come to the end, and who is quick decides nothing."""

import math
import random

import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

import pathmix
from pathmix.allocation.asynchronous import Ladder, Stretch
from pathmix.errors import OptionError


def climbed(allocation, elbos, in_flight=1):
    """How often each path was trained, if so many stretches are under way at a time."""
    ladder, under_way, counts = Ladder(allocation, len(elbos)), [], [0] * len(elbos)
    while True:
        stretch = ladder.next()
        if stretch is None or len(under_way) + 1 >= in_flight:
            if stretch is not None:
                under_way.append(stretch)
            if not under_way:
                return counts
            done = under_way.pop(0)
            counts[done.path] += 1
            ladder.tell(done, elbos[done.path])
        else:
            under_way.append(stretch)


@pytest.mark.parametrize("paths", [1, 2, 8, 13, 64, 200])
@pytest.mark.parametrize("in_flight", [1, 16])
def test_the_best_come_to_the_end(paths, in_flight):
    allocation = pathmix.AsynchronousHalving(budget=10_000, keep=4)
    elbos = random.Random(paths).sample(range(1_000), paths)
    counts = climbed(allocation, elbos, in_flight)
    last = allocation.phases(paths)
    best = np.argsort(elbos)[::-1][: min(4, paths)]
    assert all(counts[path] == last for path in best) and min(counts) == 1
    # Whoever came early went on among few: more than would if all were known, but not many more.
    for rung in range(last):
        reached = sum(count > rung for count in counts)
        assert allocation.reaching(paths, rung) <= reached <= 2 * allocation.reaching(paths, rung) + 4


def test_in_order_of_worth_nobody_goes_on_in_vain():
    allocation = pathmix.AsynchronousHalving(budget=10_000, keep=2)
    assert climbed(allocation, [-float(i) for i in range(8)]) == [3, 3, 2, 2, 1, 1, 1, 1]


def test_what_failed_is_the_worst():
    ladder = Ladder(pathmix.AsynchronousHalving(budget=100, keep=1), 2)
    assert [ladder.next(), ladder.next(), ladder.next()] == [Stretch(0, 0), Stretch(1, 0), None]
    ladder.tell(Stretch(0, 0), math.nan)
    assert ladder.next() is None
    ladder.tell(Stretch(1, 0), -1e9)
    assert ladder.next() == Stretch(1, 1)


def polynomial(x, y):
    mean = 0.0
    for power in range(int(numpyro.sample("degree", dist.Categorical(probs=np.ones(6) / 6))) + 1):
        mean = mean + numpyro.sample(f"c{power}", dist.Normal(0, 1)) * x**power
    numpyro.sample("y", dist.Normal(mean, 0.5), obs=y)


def test_evidences_are_exact_and_threads_change_no_bit():
    x = np.linspace(-1, 1, 20)
    y = 0.5 - x + x**2 + 0.5 * np.random.default_rng(0).normal(size=20)
    allocation = pathmix.AsynchronousHalving(6_000, keep=2, in_flight=4)
    quick = {"starts": 1, "evidence_draws": 20_000, "smc_evaluations": 0}
    one, two = (
        pathmix.SDVI(polynomial, allocation=allocation, threads=threads, **quick).run(0, x, y)
        for threads in (1, 2)
    )
    assert [(p.label, p.weight, p.elbo, p.steps) for p in one.paths] == [
        (p.label, p.weight, p.elbo, p.steps) for p in two.paths
    ]
    assert 0 < two.timings.utilisation <= 1 and "of training at work" in str(two.timings)
    assert len({path.steps for path in two.paths}) > 1  # some were set aside
    for path in two.paths:
        columns = np.vander(x, path.pinned["degree"] + 1, increasing=True)
        covariance = columns @ columns.T + 0.25 * np.eye(20)
        exact = -0.5 * (y @ np.linalg.solve(covariance, y) + np.linalg.slogdet(2 * np.pi * covariance)[1])
        assert path.log_evidence == pytest.approx(exact - np.log(6), abs=0.1)


def test_wrong_options():
    with pytest.raises(OptionError, match="in_flight"):
        pathmix.AsynchronousHalving(in_flight=0)
