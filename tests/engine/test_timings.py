"""Seconds of tracing count once, however deep functions are traced within each other."""

import time

import jax
import jax.numpy as jnp
import pytest

from pathmix.engine.timings import Spans, Stopwatch


def test_what_happens_within_counts_once(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("time.perf_counter", lambda: now[0])
    spans = Spans()
    for end, duration in ((2.0, 1.0), (4.0, 1.5), (5.0, 4.5), (9.0, 2.0)):  # two in the third, one after it
        now[0] = end
        spans.add(duration)
    assert spans.seconds == pytest.approx(6.5)


def test_tracing_takes_no_longer_than_the_clock_says():
    def nested(depth):
        def function(x):
            for _ in range(10):
                x = jnp.sin(x) + (jax.jit(nested(depth - 1))(x) if depth else x)
            return x

        return function

    with Stopwatch().running() as watch:
        begun = time.perf_counter()
        jax.jit(nested(2)).lower(1.0)
        seconds = time.perf_counter() - begun
        found = watch.timings(paths=0, problems=0, structures=0).tracing
    assert 0 < found <= seconds
