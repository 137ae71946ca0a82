"""What one process has compiled, the next one loads; and it may be moved or switched off."""

import json
import logging
import os
import subprocess
import sys
from copy import copy

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import optax
import pytest

import pathmix
from pathmix.errors import OptionError
from tests import exact
from tests.zoo import programs

SCRIPT = """
import json, pathmix
from tests.zoo import programs
allocation = pathmix.Uniform(budget=10_000)
found = pathmix.SDVI(programs.two_branches, allocation=allocation, progress=False).run(0, 2.0)
print(json.dumps([found.timings.executables, found.timings.from_cache, found.weights]))
"""


def in_a_new_process(folder):
    environment = {**os.environ, "PATHMIX_CACHE": str(folder)}
    command = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=600)
    return json.loads(done.stdout.splitlines()[-1])


def test_a_second_process_compiles_nothing(tmp_path):
    (compiled, before, first), (loaded, from_cache, second) = (in_a_new_process(tmp_path) for _ in range(2))
    assert min(compiled, loaded) > before, (compiled, before, loaded, from_cache)
    assert loaded == from_cache
    assert second == first


def test_another_run_on_data_of_the_same_shapes_compiles_nothing_more():
    def model(x, y):
        mean = jnp.zeros(len(y))
        for j in range(x.shape[1]):
            if numpyro.sample(f"chosen_{j}", dist.Bernoulli(0.5)):
                mean = mean + numpyro.sample(f"weight_{j}", dist.Normal(0.0, 1.0)) * x[:, j]
        numpyro.sample("y", dist.Normal(mean, 0.5), obs=y)

    generator = np.random.default_rng(0)
    first, second = ((generator.normal(size=(20, 3)), generator.normal(size=20)) for _ in range(2))
    sdvi = pathmix.SDVI(model, allocation=pathmix.Uniform(budget=800), progress=False)
    before = sdvi.run(0, *first).timings
    again = sdvi.run(0, *second)
    fresh = pathmix.SDVI(model, allocation=pathmix.Uniform(budget=800), progress=False).run(0, *second)
    assert before.executables > 4 and again.timings.executables == 0
    assert again.weights == fresh.weights


def test_all_in_one_process_share_what_is_compiled():
    """By what it computes: with another optimiser, precision or density, a training loop is another one."""

    def run(scale=0.3, **options):
        def model(y):
            z = numpyro.sample("z", dist.Gumbel(0.0, 1.0))
            numpyro.sample("y", dist.Normal(z if z > 0 else jnp.sinh(scale * z), 1.0), obs=y)

        options = {"allocation": pathmix.Uniform(budget=800), "progress": False, **options}
        return pathmix.SDVI(model, **options).run(0, 0.7)

    first, again = run(), run()
    assert first.timings.executables > 4 and again.timings.executables == 0
    assert again.weights == first.weights and again.elbo == first.elbo
    slower, other = run(optimizer=optax.adam(1e-3)), run(scale=2.0)
    assert abs(slower.paths[0].elbo - first.paths[0].elbo) > 1e-3 and other.weights != first.weights
    assert run(precision="float32").weights == pytest.approx(first.weights, abs=0.01)
    assert np.array_equal(first.sample(0, 9)["z"], again.sample(0, 9)["z"])


def test_copies_start_with_nothing_compiled():
    """optax's functions cannot be pickled, but with an optimiser that can be, SDVI can."""
    few = pathmix.Uniform(budget=100)
    sdvi = pathmix.SDVI(programs.one_path, allocation=few, weights="elbo", progress=False)
    elbo = sdvi.run(0, 0.5).elbo
    assert "_executables" not in copy(sdvi).__dict__ and copy(sdvi) == sdvi
    assert copy(sdvi).run(0, 0.5).elbo == elbo


def test_the_cache_is_where_the_option_says(tmp_path):
    def model(y):  # which no other test has compiled
        numpyro.sample("y", dist.Cauchy(numpyro.sample("x", dist.Laplace(0.0, 1.0)), 2.0), obs=y)

    chosen = tmp_path / "chosen"
    exact.fit(model, 0.5, budget=100, weights="elbo", cache=chosen)
    assert any(chosen.iterdir())
    assert jax.config.jax_compilation_cache_dir is None


def test_the_cache_of_the_user_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("PATHMIX_CACHE", str(tmp_path / "ours"))
    before = jax.config.jax_compilation_cache_dir
    jax.config.update("jax_compilation_cache_dir", str(tmp_path / "theirs"))
    try:
        exact.fit(programs.one_path, 0.5, budget=100, weights="elbo")
        assert jax.config.jax_compilation_cache_dir == str(tmp_path / "theirs")
        assert not (tmp_path / "ours").exists()
    finally:
        jax.config.update("jax_compilation_cache_dir", before)


def test_options_of_the_engine_are_checked():
    for option in ({"cache": 3}, {"memory_limit": 0}):
        with pytest.raises(OptionError, match=next(iter(option))):
            pathmix.SDVI(programs.one_path, **option)


def test_how_batches_are_cut_changes_no_bit():
    def model(y):
        k = int(numpyro.sample("k", dist.Categorical(probs=jax.numpy.ones(6) / 6)))
        x = numpyro.sample("x", dist.Normal(float(k), 1))
        numpyro.sample("y", dist.Normal(x, 1), obs=y)

    runs = [
        exact.fit(model, 1.0, budget=3_000, memory_limit=limit, threads=threads)
        for limit, threads in ((1, 1), (2**18, 2), (2**28, 1))
    ]
    assert runs[0].weights == runs[1].weights == runs[2].weights


def test_timings_and_the_log_tell_of_a_run(caplog):
    with caplog.at_level(logging.INFO, logger="pathmix"):
        timings = exact.fit(programs.two_branches, 2.0, budget=10_000).timings
    stages = timings.discovery + timings.initialisation + timings.training + timings.evaluation
    assert 0 < stages <= timings.total and timings.paths == timings.problems == 2
    assert timings.structures == 2 and timings.peak_memory > 2**20  # one box is above, the other below zero
    said = [record.message for record in caplog.records]
    assert any(text.startswith("discovery") for text in said) and said[-1].startswith("done in")
    assert f"{timings.structures} structures" in said[-1]
