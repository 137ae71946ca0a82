"""Every executor gives the posterior of threads, to the last bit."""

import logging
import threading
from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
import torch

import pathmix
from pathmix.cluster.ray import _RayCrew
from pathmix.errors import ClusterError, OptionError
from tests.cluster.programs import FEW, Y, bits, pyro_walk, walk

ray = pytest.importorskip("ray")
cluster_utils = pytest.importorskip("ray.cluster_utils")
pytestmark = [
    pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
]


class Nodes:
    """A cluster of several nodes on this machine; the driver's has no room for workers."""

    def __init__(self, count):
        self.cluster = cluster_utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
        self.nodes = [self.cluster.add_node(num_cpus=1) for _ in range(count)]
        ray.init(address=self.cluster.address, log_to_driver=False, logging_level=logging.ERROR)

    def kill(self, number=0):
        self.cluster.remove_node(self.nodes.pop(number), allow_graceful=False)

    def add(self):
        self.nodes.append(self.cluster.add_node(num_cpus=1))

    def stop(self):
        ray.shutdown()
        self.cluster.shutdown()


@pytest.fixture(scope="module")
def nodes():
    found = Nodes(2)
    yield found
    found.stop()


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
    begun, compute, reached = [], _RayCrew.compute, threading.Event()

    def counted(crew, work):
        begun.append(work)
        if len(begun) >= job:
            reached.set()
        return compute(crew, work)

    monkeypatch.setattr(_RayCrew, "compute", counted)
    fit = pathmix.SDVI(walk, executor=pathmix.RayExecutor(2), **FEW)
    with ThreadPoolExecutor(1) as beside:
        expected = bits(beside.submit(pathmix.SDVI(walk, **FEW).run, 0, Y).result())
        running = beside.submit(fit.run, 0, Y)
        assert reached.wait(120) and not running.done()
        nodes.kill()  # Ray does that in the main thread only
        found = running.result()
    nodes.add()
    assert bits(found) == expected


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
