"""Nothing leaks: threads, global settings, interruptions, output."""

import os
import signal
import threading
from collections import Counter

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
import threadpoolctl

import pathmix
from pathmix.engine.precision import engine_scope
from pathmix.engine.progress import ProgressBar
from tests import exact
from tests.zoo import programs


def bits(posterior):
    draws = posterior.sample(4, 50)
    return (
        [path.elbo for path in posterior.paths],
        [np.asarray(leaf) for path in posterior.paths for leaf in jax.tree.leaves(path.guide.params)],
        [draws[name] for name in draws],
    )


@pytest.mark.parametrize("model", [programs.ten_branches, programs.sum_branch], ids=lambda m: m.__name__)
def test_the_same_seed_gives_the_same_bits_with_one_and_two_threads(model):
    arguments = programs.PROGRAMS[model]
    one, two = (bits(exact.fit(model, *arguments, budget=2_000, threads=n)) for n in (1, 2))
    assert one[0] == two[0]
    for left, right in zip(one[1] + one[2], two[1] + two[2], strict=True):
        np.testing.assert_array_equal(left, right)
    other = bits(exact.fit(model, *arguments, budget=2_000, seed=1))
    assert other[0] != one[0]


def test_global_settings_are_left_as_they_were():
    tracer = dict(jax.core.Tracer.__dict__)
    blas = [pool["num_threads"] for pool in threadpoolctl.threadpool_info()]
    with numpyro.validation_enabled(True):
        exact.fit(programs.two_branches, 2.0, budget=200)
        with pytest.raises(ValueError, match="invalid scale"):
            dist.Normal(0.0, -1.0)
    assert jnp.zeros(1).dtype == jnp.float32
    assert not jax.config.jax_enable_x64
    assert dict(jax.core.Tracer.__dict__) == tracer
    assert [pool["num_threads"] for pool in threadpoolctl.threadpool_info()] == blas
    with pytest.raises(jax.errors.TracerBoolConversionError):
        jax.jit(bool)(1.0)


def test_blas_threads_come_back_after_overlapping_scopes():
    def threads():
        return [pool["num_threads"] for pool in threadpoolctl.threadpool_info()]

    before, inside, leave = threads(), threading.Event(), threading.Event()

    def first():
        with engine_scope("float64"):
            inside.set()
            leave.wait()

    other = threading.Thread(target=first, daemon=True)
    other.start()
    inside.wait()
    with engine_scope("float64"):
        leave.set()
        other.join()
    assert threads() == before


def test_background_compilation_changes_nothing():
    """A guide that is slow to start, so that the warm-up ends after the real start."""

    def run(threads):
        begun = threading.Event()

        class Slow(pathmix.MeanField):
            def init(self, draws):
                if len(draws) >= 1_000:
                    begun.set()
                elif threads > 1:  # one thread does one thing after another
                    assert begun.wait(timeout=600)
                return super().init(draws)

        options = {"guide": Slow(), "threads": threads, "weights": "elbo"}
        return exact.fit(programs.one_path, 0.5, budget=200, **options)

    one, two = run(1), run(2)
    assert one.elbo == two.elbo and one.likelihood_evaluations == two.likelihood_evaluations
    np.testing.assert_array_equal(one.sample(0, 20)["z"], two.sample(0, 20)["z"])


def test_errors_leave_no_trace():
    tracer = dict(jax.core.Tracer.__dict__)

    def model():
        numpyro.sample("x", dist.Normal(0, 1))
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        exact.fit(model)
    assert dict(jax.core.Tracer.__dict__) == tracer
    assert numpyro.primitives._PYRO_STACK == []
    assert np.isfinite(exact.fit(programs.one_path, 0.5, budget=50, weights="elbo").elbo)


def test_single_precision():
    posterior = exact.fit(programs.two_branches, 2.0, precision="float32")
    assert posterior.paths[0].guide.params.loc.dtype == jnp.float32
    assert posterior.elbo == pytest.approx(exact.logsumexp(list(exact.two_branches(2.0).values())), abs=0.05)


def test_user_data_in_single_precision_is_welcome():
    y = jnp.asarray(2.0)
    assert y.dtype == jnp.float32
    assert exact.fit(programs.two_branches, y).elbo == pytest.approx(-2.43, abs=0.05)


def test_progress_is_silent_when_nobody_watches(capfd):
    pathmix.SDVI(programs.one_path, allocation=pathmix.Uniform(100)).run(0, 0.5)
    captured = capfd.readouterr()
    assert captured.out == "" and captured.err == ""


def test_progress_tells_phase_paths_and_best(monkeypatch, capfd):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    allocation = pathmix.SuccessiveHalving(budget=20_000, keep=1)
    pathmix.SDVI(programs.two_branches, allocation=allocation).run(0, 2.0)
    shown = capfd.readouterr().err
    assert "discovery" in shown and "phase 1/2: 2 paths" in shown and "phase 2/2: 1 paths" in shown
    assert "best: x >= 0 (ELBO -2.5" in shown


def test_an_interrupt_keeps_the_work(monkeypatch):
    """Ctrl-C ends training early; guides and weights reached by then are returned."""
    done, lock, sent = Counter(), threading.Lock(), []

    def interrupting(bar, iterations, label, elbo):
        with lock:
            done[label] += iterations
            if not sent and len(done) == 2 and min(done.values()) >= 10_000:
                sent.append(signal.SIGINT)
                os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(ProgressBar, "advance", interrupting)
    # A shell starts background jobs with this signal ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        posterior = exact.fit(programs.two_branches, 2.0, budget=10**9, threads=2)
    finally:
        signal.signal(signal.SIGINT, before)
    assert 10_000 <= posterior.paths[0].steps < 5 * 10**8
    assert posterior.interrupted and "interrupted" in str(posterior)
    assert posterior.weights["x >= 0"] == pytest.approx(0.917, abs=0.05)
