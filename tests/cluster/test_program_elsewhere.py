"""Runs of the program by workers: the same as here, and none is lost."""

import os
import threading
import time
from dataclasses import replace

import pyro
import pyro.distributions as dist
import pytest
import torch

import pathmix
from pathmix.cluster import ray as cluster
from pathmix.frontends.pyro import elsewhere
from pathmix.frontends.recognise import bind
from tests.cluster.nodes import QUIET
from tests.cluster.programs import FEW, bits

pytestmark = QUIET
Y = torch.tensor(0.7)


def simulated(place=None, seconds=0.0):
    """A program that takes its time, and says where it is run."""

    def model(y):
        if place is not None:
            (place / f"{os.getpid()}").touch()
        time.sleep(seconds)
        x = pyro.sample("x", dist.Normal(0.0, 1.0))
        if x > 0.3:
            x = x + pyro.sample("z", dist.Exponential(1.0))
        count = pyro.sample("count", dist.Categorical(torch.ones(2))) if x < 1.0 else 0
        pyro.sample("y", dist.Normal(x + count, 0.5), obs=y)

    return model


def fitted(model, executor="threads"):
    discovery = pathmix.Guided(60, rounds=2, cover=0.5)
    return pathmix.SDVI(model, discovery=discovery, executor=executor, **FEW).run(0, Y)


def test_the_posterior_is_that_of_runs_here(nodes, monkeypatch, tmp_path):
    monkeypatch.setattr(elsewhere, "_PAYS", 0.0)
    expected, each, asked = fitted(simulated()), cluster._RayCrew.each, []

    def told(self, task, items):
        asked.append([word for word, _ in items])
        return each(self, task, items)

    monkeypatch.setattr(cluster._RayCrew, "each", told)
    found = fitted(simulated(tmp_path), pathmix.RayExecutor(1))
    assert len(asked[0]) > 40 and not set(asked[0]) & set().union(*asked[1:])  # each run once
    assert bits(found) == bits(expected)
    assert any("x > 0.3" in path.label for path in found.paths)  # code does not travel, but its text does
    processes = {int(file.name) for file in tmp_path.iterdir()}
    assert os.getpid() in processes and len(processes) > 1


@pytest.mark.parametrize(
    ("seconds", "left", "pays"), [(0.01, 900, False), (0.01, 1_100, True), (1.0, 9, False)]
)
def test_it_pays_for_what_takes_long(seconds, left, pays):
    program = bind(simulated(), (Y,))
    ahead, alone = elsewhere.Ahead(replace(program, helpers=lambda task, items: [])), elsewhere.Ahead(program)
    for _ in range(8):
        assert not ahead.pays(10**6)  # nobody knows yet how long they take
        ahead.took(seconds)
        alone.took(seconds)
    assert ahead.pays(left) is pays and not alone.pays(left)


def test_what_cannot_travel_is_run_here(nodes, monkeypatch, caplog):
    monkeypatch.setattr(elsewhere, "_PAYS", 0.0)
    lock, plain = threading.Lock(), simulated()

    def model(y):
        with lock:
            plain(y)

    with caplog.at_level("INFO", "pathmix"):
        found = fitted(model, pathmix.RayExecutor(1))
    assert "cannot be shipped" in caplog.text
    assert bits(found) == bits(fitted(plain))


def test_what_fails_there_is_made_again_here(nodes, monkeypatch):
    """So that its error is told as ever."""
    monkeypatch.setattr(elsewhere, "_PAYS", 0.0)
    here = os.getpid()

    def model(y, everywhere):
        x = pyro.sample("x", dist.Normal(0.0, 1.0))
        if not everywhere and os.getpid() != here:
            raise OSError("no licence for this machine")
        if x > 1.0:
            raise ZeroDivisionError("x is large")
        pyro.sample("y", dist.Normal(x, 0.5), obs=y)

    def fit(everywhere, executor):
        with pytest.warns(pathmix.PathmixWarning, match="x is large at .* in 11 of 60 prior runs"):
            discovery = pathmix.PriorDiscovery(60)
            return pathmix.SDVI(model, discovery=discovery, executor=executor, **FEW).run(0, Y, everywhere)

    expected = bits(fit(True, "threads"))
    for everywhere in (True, False):
        assert bits(fit(everywhere, pathmix.RayExecutor(1))) == expected


def test_a_worker_that_is_lost_with_its_runs(nodes, monkeypatch):
    monkeypatch.setattr(elsewhere, "_PAYS", 0.0)
    here, plain = os.getpid(), simulated()

    def model(y):
        if os.getpid() != here:
            os._exit(1)
        plain(y)

    assert bits(fitted(model, pathmix.RayExecutor(2))) == bits(fitted(plain))
