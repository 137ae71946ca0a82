"""Batches without batched LAPACK calls, which can wait for each other for ever."""

import threading

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

from pathmix.engine import batching
from pathmix.engine.batching import in_chunks, over_rows
from pathmix.engine.lapack import without_batched_calls
from tests import exact
from tests.engine.lapack_calls import batched_custom_calls, batched_equations

POINTS = np.linspace(0, 1, 6)


def covariance(length):
    distance = (POINTS[:, None] - POINTS) ** 2
    return jnp.exp(-distance / length) + 0.1 * jnp.eye(6)


def log_density(length):
    factor = jnp.linalg.cholesky(covariance(length))
    solved = jax.scipy.linalg.solve_triangular(factor, jnp.sin(9 * POINTS), lower=True)
    return -jnp.sum(solved**2) / 2 - jnp.sum(jnp.log(jnp.diag(factor)))


def solve_in_cond(x):
    return jax.lax.cond(jnp.array(True), jnp.linalg.solve, lambda a, b: b, covariance(x), POINTS)


def spectrum_in_while(x):
    def body(carried):
        number, total = carried
        return number + 1, total + jnp.linalg.svd(covariance(x + number), compute_uv=False)

    return jax.lax.while_loop(lambda carried: carried[0] < 3, body, (0, jnp.zeros(6)))[1]


@jax.custom_vjp
def log_determinant(matrix):
    return 2 * jnp.sum(jnp.log(jnp.diag(jnp.linalg.cholesky(matrix))))


log_determinant.defvjp(
    lambda matrix: (log_determinant(matrix), jnp.linalg.inv(matrix)),
    lambda inverse, slope: (slope * inverse.T,),
)


def deep(x):
    """A factorisation in a conditional in a loop in a checkpoint in a compiled function."""

    @jax.jit
    @jax.checkpoint
    def inner(x):
        def step(carry, scale):
            return jax.lax.cond(scale > 1, lambda c: c + log_density(scale * x), jnp.sin, carry), scale

        return jax.lax.scan(step, x, jnp.linspace(0.5, 2, 3))[0]

    return inner(x)


LOWER = np.tril(1 + np.cos(POINTS[:, None] - POINTS))

# Functions of a number whose gradients exist, by where the factorisation is.
DIFFERENTIABLE = {
    "plain": log_density,
    "slogdet": lambda x: jnp.linalg.slogdet(covariance(x))[1],
    "det": lambda x: jnp.linalg.det(covariance(x)),
    "pinv": lambda x: jnp.linalg.pinv(covariance(x)[:, :4]),
    "inv": lambda x: jnp.linalg.inv(covariance(x)),
    "qr": lambda x: jnp.abs(jnp.linalg.qr(covariance(x))[1]),
    "stacked": lambda x: jnp.linalg.slogdet(jnp.stack([covariance(x), covariance(2 * x)]))[1],
    "cholesky in scan": lambda x: jax.lax.map(lambda s: jnp.linalg.cholesky(covariance(s * x)), POINTS + 1),
    "solve in cond": solve_in_cond,
    "eigh in remat": jax.checkpoint(lambda x: jnp.linalg.eigh(covariance(x))[0]),
    "cholesky in custom_vjp": lambda x: log_determinant(covariance(x)),
    "linear solve": lambda x: jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(covariance(x)), True), POINTS),
    "triangular, batched by known": lambda x: jax.scipy.linalg.solve_triangular(covariance(x), POINTS),
    "tridiagonal": lambda x: jax.lax.linalg.tridiagonal_solve(
        x * POINTS, x + 2 + POINTS, x * POINTS[::-1], covariance(x)
    ),
    "exponential": lambda x: jax.scipy.linalg.expm(covariance(x)),
    "deep": deep,
}
FORWARD_ONLY = {
    "value of slogdet": DIFFERENTIABLE["slogdet"],  # in custom_jvp until it is differentiated
    "value of det": DIFFERENTIABLE["det"],
    "value of pinv": DIFFERENTIABLE["pinv"],
    "value of a custom_vjp": DIFFERENTIABLE["cholesky in custom_vjp"],
    "svd in while": spectrum_in_while,
    "hessenberg": lambda x: jnp.triu(jax.lax.linalg.hessenberg(covariance(x))[0]),
    "schur": lambda x: jax.scipy.linalg.schur(covariance(x))[0],
    "pivoted qr": lambda x: jnp.abs(jax.scipy.linalg.qr(covariance(x), pivoting=True)[1]),
    "eig": lambda x: jnp.sort(jnp.linalg.eigvals(covariance(x)).real),
}
SAFE = {
    "triangular, known by batched": lambda x: jax.scipy.linalg.solve_triangular(
        LOWER, jnp.sin(x * POINTS), lower=True
    ),
    "nothing": jnp.sin,
}


def value_and_gradient(function):
    """All values, and the gradient of a sum of them with unequal weights."""

    def total(x):
        values = jnp.ravel(function(x))
        return jnp.sum(values * jnp.cos(jnp.arange(values.size))), values

    return jax.value_and_grad(total, has_aux=True)


EVERY = {
    **{name: value_and_gradient(function) for name, function in (DIFFERENTIABLE | SAFE).items()},
    **FORWARD_ONLY,
}
LENGTHS = np.linspace(0.2, 2, 5)


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("name", EVERY)
def test_rows_are_as_under_vmap(name, monkeypatch):
    monkeypatch.setattr(batching, "_version", lambda: (0, 10, 2))
    plain, careful = jax.vmap(EVERY[name]), over_rows(EVERY[name])
    for batched in (batched_equations, batched_custom_calls):
        assert bool(batched(plain, LENGTHS)) == (name not in SAFE)
        assert not batched(careful, LENGTHS)
    expected, found = jax.jit(plain)(LENGTHS), jax.jit(careful)(LENGTHS)
    jax.tree.map(lambda e, f: np.testing.assert_allclose(f, e, rtol=1e-10, atol=1e-12), expected, found)


def test_functions_without_lapack_are_left_alone():
    jaxpr = jax.make_jaxpr(jax.vmap(jax.checkpoint(jnp.sin)))(LENGTHS).jaxpr
    assert without_batched_calls(jaxpr) is jaxpr


def test_a_factorisation_of_no_matrices(monkeypatch):
    monkeypatch.setattr(batching, "_version", lambda: (0, 10, 2))
    found = over_rows(lambda x: jnp.linalg.cholesky(x * jnp.ones((0, 3, 3))))(LENGTHS)
    assert found.shape == (5, 0, 3, 3)


def test_newer_versions_need_no_care(monkeypatch):
    monkeypatch.setattr(batching, "_version", lambda: (0, 11, 2))
    assert batched_custom_calls(over_rows(log_density), LENGTHS)


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
        results.append(exact.fit(model, jnp.sin(points), budget=800, threads=2))

    results = []
    thread = threading.Thread(target=fit, daemon=True)
    thread.start()
    thread.join(timeout=600)  # only a hang takes so long
    assert results, "training hangs"
    assert all(path.status.usable for path in results[0].paths)
