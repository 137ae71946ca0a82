"""The guard against programs without end counts what a program computes: neither waiting nor compiling."""

import threading
import time

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
import pyro
import pytest
from jax import monitoring

import pathmix
from pathmix.errors import RunawayProgramError
from pathmix.frontends.owntime import OwnTime
from tests import exact


class Clock:
    """Processor time that only passes when a test says so."""

    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def processor(monkeypatch):
    clock, on_the_wall = Clock(), time.perf_counter
    monkeypatch.setattr(time, "thread_time", clock)
    monkeypatch.setattr(time, "perf_counter", lambda: on_the_wall() + clock.now)
    return clock


@pytest.fixture
def _hurried(monkeypatch):
    """Every look at a clock on the wall finds an hour gone."""
    wall = Clock()

    def look():
        wall.now += 3600.0
        return wall.now

    for name in ("monotonic", "perf_counter", "time"):
        monkeypatch.setattr(time, name, look)


def numpyro_model(work):
    def model():
        x = numpyro.sample("x", dist.Normal(0, 1))
        work()
        if x < 0:
            numpyro.sample("z", dist.Normal(0, 1))

    return model


def pyro_model(work):
    def model():
        x = pyro.sample("x", pyro.distributions.Normal(0, 1))
        work()
        if x < 0:
            pyro.sample("z", pyro.distributions.Normal(0, 1))

    return model


def run(model):
    discovery = pathmix.PriorDiscovery(8, max_seconds=60.0)
    return exact.fit(model, budget=10, weights="elbo", discovery=discovery)


MODELS = pytest.mark.parametrize("make", [numpyro_model, pyro_model])


@MODELS
@pytest.mark.usefixtures("_hurried")
def test_waiting_does_not_count(make, processor):
    assert len(run(make(lambda: None)).paths) == 2


@MODELS
def test_what_a_program_computes_counts(make, processor):
    def work():
        processor.now += 61.0

    with pytest.raises(RunawayProgramError, match=r"=60: 61\.0 s of processor time.*'x' at test_own"):
        run(make(work))


@MODELS
def test_every_run_has_the_whole_time(make, processor):
    def work():
        processor.now += 59.0

    assert len(run(make(work)).paths) == 2


@MODELS
def test_compilation_does_not_count(make, processor):
    """Each compilation takes 100 s of the processor's time here."""

    def work():
        jax.jit(lambda x: jnp.sin(x) + 1)(jnp.ones(3))  # compiled anew each time

    own = threading.get_ident()

    def compiled(event, duration, **_):
        if event == "/jax/core/compile/backend_compile_duration" and threading.get_ident() == own:
            processor.now += 100.0

    monitoring.register_event_duration_secs_listener(compiled)
    try:
        assert len(run(make(work)).paths) == 2
    finally:
        monitoring.unregister_event_duration_listener(compiled)
    assert processor.now >= 300.0


def test_a_loop_without_end_ends_however_much_it_compiles(processor):
    def model():
        x = numpyro.sample("x", dist.Normal(0, 1))
        while x < 100:
            processor.now += 1.0
            x = jax.jit(lambda x: x * 1.0)(x)  # compiled anew each time

    with pytest.raises(RunawayProgramError, match=r"max_seconds=60: 61\.0 s"):
        run(model)


def test_what_other_threads_compile_is_not_taken_off(processor):
    with OwnTime() as own:
        processor.now += 5.0
        event = "/jax/core/compile/backend_compile_duration"

        def elsewhere():
            monitoring.record_scalar(event, 0.0)
            processor.now += 3.0
            monitoring.record_event_duration_secs(event, 3.0)

        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        assert own.seconds() == 8.0


def test_no_listener_stays_behind(monkeypatch):
    from jax._src import monitoring as listeners

    names = ("_event_listeners", "_event_duration_secs_listeners", "_scalar_listeners")
    for name in names:
        monkeypatch.setattr(listeners, name, list(getattr(listeners, name)))

    def heard():
        return [len(getattr(listeners, name)) for name in names]

    before = heard()
    run(numpyro_model(lambda: None))
    with pytest.raises(ZeroDivisionError):
        run(pyro_model(lambda: 1 // 0))
    assert heard() == before
    with OwnTime():
        monitoring.clear_event_listeners()
    assert heard() == [0, 0, 0]


def test_what_is_compiled_is_counted_after_others_have_cleared_all_listeners(monkeypatch):
    from jax._src import monitoring as listeners

    for name in ("_event_listeners", "_event_duration_secs_listeners", "_scalar_listeners"):
        monkeypatch.setattr(listeners, name, [])

    def model():  # which no other test has compiled
        numpyro.sample("x", dist.Gumbel(0.0, 1.0))

    assert run(model).timings.executables > 0
