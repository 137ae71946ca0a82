"""What elements depend on: no change of a variable may reach an element that is said not to depend on it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro import distributions as dist

from pathmix.engine.precision import engine_scope
from pathmix.program.graph import Graph
from pathmix.summation.elements import dependence
from pathmix.summation.sets import Sets

SIZE, VALUES = 5, 3
TABLE = np.arange(1.0, 10.0).reshape(3, 3) / 45
ROWS = np.array([4, 0, 2])


def through_scan(z):
    return jax.lax.scan(
        lambda carry, i: (z[i], dist.Categorical(probs=jnp.asarray(TABLE)[carry]).log_prob(z[i])), 0, ROWS
    )[1]


def counted_scan(z):
    def turn(carry, _):
        i, before = carry
        return (i + 1, z[i]), 10.0 * before + z[i]

    return jax.lax.scan(turn, (0, 0), None, length=SIZE)[1]


# Each with whether every element is said to depend on as few variables as it does.
FUNCTIONS = {
    "by element": (lambda z: jnp.exp(z * 2.0) + jnp.where(z == 1, 3.0, z), True),
    "looked up": (lambda z: jnp.asarray(TABLE)[z], True),
    "looked up in two axes": (lambda z: jnp.asarray(TABLE)[z, z[::-1]], True),
    "rows of the variable": (lambda z: 1.0 * z[ROWS], True),
    "rows that may be out of range": (
        lambda z: jnp.take(1.0 * z, jnp.array([1, 9]), mode="fill", fill_value=jnp.nan)[:1], True,
    ),
    "neighbours": (lambda z: jnp.asarray(TABLE)[z[:-1], z[1:]], True),
    "log-probabilities given neighbours": (
        lambda z: dist.Categorical(probs=jnp.asarray(TABLE)[z[:-1]]).log_prob(z[1:]), True,
    ),
    "one-hot": (lambda z: jax.nn.one_hot(z, VALUES) @ TABLE, True),
    "outer": (lambda z: z[:, None] * 1.0 + z, True),
    "moved": (lambda z: 1.0 * jnp.concatenate([z.reshape(1, SIZE).T, jnp.ones((SIZE, 1), int)], 1), True),
    "padded": (lambda z: jnp.zeros(SIZE + 2).at[1:-1].set(z), True),
    "set": (lambda z: jnp.zeros(8).at[jnp.asarray(ROWS)].set(1.0 * z[:3]), True),
    "set where the variable says": (
        lambda z: jnp.zeros((SIZE, VALUES)).at[jnp.arange(SIZE), z].set(1.0), True,
    ),
    "added where the variable says": (
        lambda z: jnp.zeros((SIZE, VALUES, 2)).at[jnp.arange(SIZE), z].add(1.0 + z[::-1, None]), True,
    ),
    "added everywhere": (lambda z: jnp.ones(SIZE).at[:].add(1.0 * z), True),
    "added in a known place": (lambda z: jnp.ones(SIZE).at[2].add(1.0 * z[0]), True),
    "set in any row": (lambda z: jnp.zeros((VALUES, SIZE)).at[z, ROWS[0]].set(1.0 * z), False),
    "set twice": (lambda z: jnp.zeros((2, VALUES)).at[jnp.array([0, 1, 0, 1, 1]), z].set(1.0 + z), False),
    "set over the variable": (
        lambda z: (1.0 * z[:, None] * jnp.ones(VALUES)).at[jnp.arange(SIZE), z[::-1]].set(9.0), True,
    ),
    "reduced": (lambda z: jnp.sum(z.reshape(SIZE, 1) * jnp.ones((1, 4)), axis=1), True),
    "all": (lambda z: jnp.full(2, 1.0) * jnp.sum(z), True),
    "running": (lambda z: jnp.cumsum(1.0 * z), True),
    "normal": (lambda z: dist.Normal(jnp.asarray(TABLE[0])[z], 1.0 + z).log_prob(0.3), True),
    "solved": (lambda z: jnp.linalg.cholesky((1.0 + z)[:, None, None] * jnp.eye(2)), False),
    "in a call": (lambda z: jax.jit(lambda v: v[::2] * 3.0)(z), True),
    "with a rule": (lambda z: jax.nn.softplus(1.0 * z) + jax.nn.relu(z - 1.0), True),
    "scan over rows": (lambda z: jax.lax.scan(lambda c, x: (x, c + 2.0 * x), 0, z)[1], True),
    "scan backwards": (lambda z: jax.lax.scan(lambda c, x: (x, c + 2.0 * x), 0, z, reverse=True)[1], True),
    "scan that looks up": (through_scan, True),
    "scan that counts": (counted_scan, True),
    "branch": (lambda z: jax.lax.cond(z[0] > 0, lambda: z * 2.0, lambda: z * 1.0), False),
    "loop": (lambda z: jax.lax.fori_loop(0, 2, lambda i, v: v + z, 0.0 * z), True),
    "sorted": (lambda z: jnp.sort(z) * 1.0, False),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_elements_depend_on(name):
    function, is_exact = FUNCTIONS[name]
    sets = Sets()
    with engine_scope("float64"):
        graph = Graph.of(jax.make_jaxpr(function)(jnp.zeros(SIZE, int)))
        own = np.array([sets.number([i]) for i in range(SIZE)])
        (said,) = dependence(graph, [None], {0: own}, sets)
        settings = np.array(list(np.ndindex(*[VALUES] * SIZE)))
        results = np.asarray(jax.jit(jax.vmap(function))(jnp.asarray(settings)))
    table = results.reshape(*[VALUES] * SIZE, *said.shape)
    changed = [np.any(np.ptp(table, axis=v) != 0, axis=tuple(range(SIZE - 1))) for v in range(SIZE)]
    for place in np.ndindex(said.shape):
        seen = {variable for variable in range(SIZE) if changed[variable][place]}
        assert seen <= sets.members(int(said[place]))
        assert not is_exact or seen == sets.members(int(said[place]))
