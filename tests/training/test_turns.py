"""Paths train in turns, so that an interrupted run has something of every path."""

import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy import stats

import pathmix
from pathmix import Status
from pathmix.engine.progress import ProgressBar
from pathmix.engine.threads import Threads
from tests import exact


def counted(name, turns, log):
    for turn in range(turns):
        log.append((name, turn))
        yield


def test_every_task_gets_a_turn_before_any_gets_its_next():
    log = []
    with Threads(1, "float64") as executor:
        executor.take_turns([counted(name, turns, log) for name, turns in (("a", 3), ("b", 1), ("c", 2))])
    assert log == [("a", 0), ("b", 0), ("c", 0), ("a", 1), ("c", 1), ("a", 2)]


def test_of_very_many_tasks_some_wait():
    log, begun, ended = [], set(), set()

    def task(number):
        for turn in range(3):
            begun.add(number)
            assert len(begun - ended) <= 3
            log.append((number, turn))
            yield
        ended.add(number)

    with Threads(1, "float64") as executor:
        executor.take_turns([task(number) for number in range(8)], most_open=3)
    assert sorted(log) == [(number, turn) for number in range(8) for turn in range(3)]
    assert log[:6] == [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1)]


def test_stopping_closes_what_waits():
    log, closed = [], []

    def task(name):
        try:
            for turn in range(100):
                log.append((name, turn))
                if len(log) == 5:
                    executor.stopping.set()
                yield
        finally:
            closed.append(name)

    with Threads(1, "float64") as executor:
        executor.take_turns([task(name) for name in "abc"])
    assert len(log) == 5 and sorted(closed) == ["a", "b", "c"]


def test_an_error_of_a_task_is_raised():
    def broken():
        yield
        raise RuntimeError("broken on purpose")

    with Threads(2, "float64") as executor, pytest.raises(RuntimeError, match="on purpose"):
        executor.take_turns([broken(), counted("a", 3, [])])


def four_levels(y):
    k = int(numpyro.sample("k", dist.Categorical(probs=np.ones(5) / 5)))
    z = numpyro.sample(f"z{k}", dist.Normal(k, 1)) if k < 4 else 2.0
    numpyro.sample("y", dist.Normal(z, 0.5), obs=y)


def four_structures(y):
    """Paths of one structure take their turns together; these do not."""
    k = int(numpyro.sample("k", dist.Categorical(probs=np.ones(5) / 5)))
    z = sum(numpyro.sample(f"z{i}", dist.Normal(k, 1)) for i in range(k + 1)) if k < 4 else 2.0
    numpyro.sample("y", dist.Normal(z, 0.5), obs=y)


def interrupted_after(monkeypatch, turns, model=four_levels, **options):
    """A run that stops like one with Ctrl-C, after so many turns."""
    executors, done = [], []
    make = Threads.__init__
    monkeypatch.setattr(Threads, "__init__", lambda self, *a: (make(self, *a), executors.append(self))[0])
    advance = ProgressBar.advance

    def stop(self, steps, label, elbo):
        advance(self, steps, label, elbo)
        done.append(label)
        if len(done) == turns:
            executors[-1].stopping.set()

    monkeypatch.setattr(ProgressBar, "advance", stop)
    return exact.fit(model, 1.7, budget=40_000, threads=1, **{"starts": 1, **options}), done


@pytest.mark.parametrize("starts", [1, 3])
def test_an_interrupted_run_has_weighed_every_path(monkeypatch, starts):
    """Weights after one turn each of a thousand steps are near the exact ones, the path without sites too."""
    posterior, done = interrupted_after(monkeypatch, 4, starts=starts)
    assert posterior.interrupted and len(set(done)) == 4
    log_z = np.log(0.2) + stats.norm.logpdf(1.7, np.arange(4), np.sqrt(1.25))
    log_z = np.append(log_z, np.log(0.2) + stats.norm.logpdf(1.7, 2.0, 0.5))
    truth = exact.softmax(log_z)
    found = {path.pinned["k"]: path for path in posterior.paths}
    assert found[4].status is Status.EXACT
    assert any("5 of 5 paths were weighed" in note for note in posterior.notes)
    if starts == 1:
        assert [found[k].weight for k in range(5)] == pytest.approx(truth, abs=0.02)


def test_the_note_counts_what_was_weighed(monkeypatch):
    posterior, _ = interrupted_after(monkeypatch, 2, model=four_structures)
    assert any("3 of 5 paths were weighed" in note for note in posterior.notes)
    assert [path.status for path in posterior.paths].count(Status.UNTRAINED) == 2
    assert not posterior.verdict.ok and not posterior.verdict.resolved


def test_turns_change_no_result():
    """Any number of threads, which changes who trains when, gives the same bits."""
    one, two = (exact.fit(four_levels, 1.7, budget=4_000, threads=threads) for threads in (1, 2))
    assert one.weights == two.weights


@pytest.mark.parametrize("steps", [1, 5, 12, 40, 200])
def test_a_rising_elbo_is_noticed_at_any_number_of_steps(steps):
    """The posterior is 30 prior scales away, and a step of the optimiser goes a hundredth of one."""

    def model(y):
        x = numpyro.sample("x", dist.Normal(0, 1))
        numpyro.sample("y", dist.Normal(x, 0.1), obs=y)

    posterior = exact.fit(model, 30.0, allocation=pathmix.Uniform(budget=steps), weights="elbo")
    assert any("still rising" in note for note in posterior.notes)


@pytest.mark.parametrize("steps", [200, 2_000])
def test_a_settled_elbo_is_not_thought_to_rise(steps):
    """The guide is exact from the start."""

    def model(y):
        numpyro.sample("x", dist.Normal(0, 1))
        numpyro.sample("y", dist.Normal(0, 1), obs=y)

    for seed in range(5):
        posterior = exact.fit(model, 0.3, seed=seed, allocation=pathmix.Uniform(budget=steps))
        assert not any("rising" in note for note in posterior.notes)


def test_a_path_that_may_overtake_counts_as_rising():
    """It has no weight yet, but would have after more training."""

    def model(y):
        if numpyro.sample("k", dist.Bernoulli(0.5)):
            x = numpyro.sample("x", dist.Normal(0, 1))
            numpyro.sample("y", dist.Normal(x, 0.1), obs=y)
        else:
            numpyro.sample("y", dist.Normal(0, 0.2), obs=y)

    posterior = exact.fit(model, 2.0, allocation=pathmix.Uniform(budget=100), weights="elbo")
    assert posterior.paths[0].pinned["k"] == 0 and posterior.paths[0].weight > 0.99
    assert any("still rising" in note for note in posterior.notes)
