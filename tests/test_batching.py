"""Batches without batched LAPACK calls, which can wait for each other for ever."""

import threading

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

from pathmix import batching
from pathmix.batching import in_chunks, over_rows
from pathmix.precision import engine_scope
from tests import exact

POINTS = jnp.linspace(0, 1, 6)


def covariance(length):
    distance = (POINTS[:, None] - POINTS) ** 2
    return jnp.exp(-distance / length) + 0.1 * jnp.eye(6)


def log_density(length):
    factor = jnp.linalg.cholesky(covariance(length))
    solved = jax.scipy.linalg.solve_triangular(factor, jnp.sin(9 * POINTS), lower=True)
    return -jnp.sum(solved**2) / 2 - jnp.sum(jnp.log(jnp.diag(factor)))


def batched_calls(function, *args):
    return batching._calls_lapack(jax.make_jaxpr(function)(*args).jaxpr)


@pytest.mark.parametrize(
    "function",
    [
        log_density,
        jax.value_and_grad(log_density),
        lambda x: jnp.linalg.solve(covariance(x), POINTS),
        lambda x: jnp.linalg.eigh(covariance(x))[0],
        lambda x: jnp.linalg.slogdet(jnp.stack([covariance(x), covariance(2 * x)])),
        lambda x: jnp.sin(x),
    ],
)
def test_rows_are_as_under_vmap(function, monkeypatch):
    monkeypatch.setattr(batching, "_version", lambda: (0, 10, 2))
    with engine_scope("float64"):
        lengths = jnp.linspace(0.2, 2, 5)
        expected, found = jax.vmap(function)(lengths), jax.jit(over_rows(function))(lengths)
        jax.tree.map(lambda e, f: np.testing.assert_allclose(f, e, rtol=1e-10), expected, found)
        assert not batched_calls(over_rows(function), lengths)


def test_newer_versions_need_no_care(monkeypatch):
    monkeypatch.setattr(batching, "_version", lambda: (0, 11, 2))
    assert batched_calls(over_rows(log_density), jnp.linspace(0.2, 2, 5))


def test_chunks_give_every_row_once():
    rows = jnp.arange(12.0)
    for chunk in (1, 5, 12, 64):
        assert np.array_equal(in_chunks(jax.vmap(lambda x: 2 * x), rows, min(chunk, 12)), 2 * rows)


def test_paths_with_factorisations_train_side_by_side():
    """On two cores this hangs without the care, within a second or so."""
    points = jnp.linspace(0, 1, 40)
    distance = (points[:, None] - points) ** 2

    def model(y):
        kind = int(numpyro.sample("kind", dist.Categorical(probs=jnp.ones(4) / 4)))
        length = numpyro.sample("length", dist.LogNormal(0, 1))
        correlation = jnp.exp(-distance / length)
        for _ in range(kind):  # a different graph for each path
            correlation = correlation * jnp.exp(-distance * length)
        numpyro.sample("y", dist.MultivariateNormal(jnp.zeros(40), correlation + jnp.eye(40)), obs=y)

    def fit():
        results.append(exact.fit(model, jnp.sin(points), budget=4_000, threads=2))

    results = []
    thread = threading.Thread(target=fit, daemon=True)
    thread.start()
    thread.join(timeout=180)
    assert results, "training hangs"
    assert all(path.status.usable for path in results[0].paths)
