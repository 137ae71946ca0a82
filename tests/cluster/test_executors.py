"""Every executor gives the posterior of threads, to the last bit."""

import threading
from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
import torch

import pathmix
from pathmix.cluster import ray as cluster
from pathmix.errors import ClusterError, OptionError
from tests.cluster.nodes import QUIET
from tests.cluster.programs import FEW, Y, bits, pyro_walk, walk

pytestmark = QUIET


class Failing(cluster._Actor):
    """Fails at a path, each time in another way."""

    times = 0

    def compute(self, order, *given):
        if "k=2" in cluster._ray().get_runtime_context().get_task_name():
            self.times += 1
            raise MemoryError(f"time {self.times}")
        return super().compute(order, *given)


@pytest.mark.parametrize("workers", [1, 2])
def test_the_posterior_is_that_of_threads(nodes, workers):
    executor = pathmix.RayExecutor(workers)
    assert bits(pathmix.SDVI(walk, executor=executor, **FEW).run(0, Y)) == bits(
        pathmix.SDVI(walk, **FEW).run(0, Y)
    )


def test_programs_in_pyro(nodes):
    y = torch.tensor(Y)
    executor = pathmix.RayExecutor(2)
    found = pathmix.SDVI(pyro_walk, executor=executor, **FEW).run(0, y)
    assert bits(found) == bits(pathmix.SDVI(pyro_walk, **FEW).run(0, y))


def test_a_program_that_calls_python_is_refused_before_anything_starts(nodes):
    def model(y):
        x = numpyro.sample("x", dist.Normal(0, 1))
        doubled = jax.pure_callback(lambda v: 2 * v, jax.ShapeDtypeStruct((), x.dtype), x)
        numpyro.sample("y", dist.Normal(jax.lax.stop_gradient(doubled) + x, 1), obs=y)

    with pytest.raises(ClusterError, match=r"calls back to Python .pure_callback.*Leave executor= out"):
        pathmix.SDVI(model, executor=pathmix.RayExecutor(1), **FEW).run(0, 1.0)


@pytest.mark.parametrize(
    "job", [5, *np.random.default_rng(0).choice(np.arange(6, 150), 20, replace=False).tolist()]
)
def test_a_node_that_is_lost_changes_nothing(nodes, monkeypatch, job):
    begun, compute, reached = [], cluster._RayCrew.compute, threading.Event()

    def counted(crew, work):
        begun.append(work)
        if len(begun) >= job:
            reached.set()
        return compute(crew, work)

    monkeypatch.setattr(cluster._RayCrew, "compute", counted)
    fit = pathmix.SDVI(walk, executor=pathmix.RayExecutor(2), **FEW)
    with ThreadPoolExecutor(1) as beside:
        expected = bits(beside.submit(pathmix.SDVI(walk, **FEW).run, 0, Y).result())
        running = beside.submit(fit.run, 0, Y)
        assert reached.wait(120) and not running.done()
        nodes.kill()  # Ray does that in the main thread only
        found = running.result()
    nodes.add()
    assert bits(found) == expected


def test_an_error_of_a_worker_is_told_and_not_tried_again(nodes, monkeypatch):
    monkeypatch.setattr(cluster, "_Actor", Failing)
    with pytest.warns(pathmix.PathmixWarning, match="MemoryError"):
        found = pathmix.SDVI(walk, executor=pathmix.RayExecutor(1), **FEW).run(0, Y)
    failed = [path for path in found.paths if "k=2" in path.label]
    assert failed
    assert sorted(path.message for path in failed)[0].endswith("time 1")


def test_an_error_of_the_program_is_that_of_threads(nodes):
    def model(y):
        x = numpyro.sample("x", dist.Normal(0, 1))
        if x > -50:
            raise ZeroDivisionError("on this side")
        numpyro.sample("y", dist.Normal(x, 1), obs=y)

    told = []
    for executor in ("threads", pathmix.RayExecutor(1)):
        with pytest.raises(Exception, match="on this side") as error:
            pathmix.SDVI(model, executor=executor, **FEW).run(0, 1.0)
        assert "model" in [frame.name for frame in error.traceback]
        told.append((error.type, str(error.value)))
    assert told[0] == told[1]


def test_without_any_worker_nothing_begins(nodes):
    executor = pathmix.RayExecutor(1, cpus=64, patience=0.5)
    with pytest.raises(ClusterError, match=r"No worker came within 0.5 s.*with 64 CPUs each"):
        pathmix.SDVI(walk, executor=executor, **FEW).run(0, Y)


def test_a_run_in_another_thread_has_the_same_bits():
    with ThreadPoolExecutor(1) as beside:
        there = beside.submit(pathmix.SDVI(walk, **FEW).run, 0, Y).result()
    assert bits(there) == bits(pathmix.SDVI(walk, **FEW).run(0, Y))


def test_wrong_options():
    with pytest.raises(OptionError, match=r'executor must be "threads", or one like pathmix.RayExecutor'):
        pathmix.SDVI(walk, executor="ray")
    with pytest.raises(OptionError, match="workers"):
        pathmix.RayExecutor(0)
