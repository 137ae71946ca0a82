"""Programs that name types of 32 bits run in 64 as well."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.contrib.control_flow import cond, scan
from scipy import stats
from scipy.special import logsumexp

import pathmix
from tests import exact

Y = np.array([0.4, 1.3, -0.2, 0.9])
AWAY = np.array([[0.7, 0.3], [0.2, 0.8]])


@pytest.mark.parametrize("dtype", [jnp.int32, int])
def test_carried_by_scan(dtype):
    def model(y):
        def step(carry, seen):
            turns, before, key = carry
            z = numpyro.sample("z", dist.Bernoulli(jnp.asarray(AWAY)[before, 1]))
            numpyro.sample("y", dist.Normal(1.0 * z, 1.0), obs=seen)
            return (turns + 1.0 * z, z, key), turns

        scan(step, (jnp.float32(0), jnp.zeros((), dtype), jax.random.key(0)), y)

    logs = np.log(AWAY[0])
    for number, y in enumerate(Y):
        logs = logs if number == 0 else logsumexp(logs[:, None] + np.log(AWAY), axis=0)
        logs = logs + stats.norm.logpdf(y, [0, 1], 1)
    posterior = exact.fit(model, Y, discovery=pathmix.PriorDiscovery(20))
    assert posterior.log_evidence == pytest.approx(logsumexp(logs), abs=1e-8)


@pytest.mark.parametrize("narrow_first", [False, True])
def test_branches_of_cond(narrow_first):
    def model():
        k = numpyro.sample("k", dist.Bernoulli(0.4))
        x = numpyro.sample("x", dist.Bernoulli(0.3))
        branches = [lambda k: k, lambda _: jnp.int32(2)]
        first, second = branches[::-1] if narrow_first else branches
        value = cond(x == 1, first, second, k)
        numpyro.sample("y", dist.Normal(1.0 * value, 1.0), obs=1.2)

    posterior = exact.fit(model, discovery=pathmix.Enumeration())
    two = 0.3 if narrow_first else 0.7
    weights = np.log([0.6 * (1 - two), 0.4 * (1 - two), two])
    wanted = logsumexp(weights + stats.norm.logpdf(1.2, [0, 1, 2], 1))
    assert posterior.log_evidence == pytest.approx(wanted, abs=1e-8)


LOOPS = {
    "scan": lambda k: jax.lax.scan(lambda carry, _: (carry + k, None), jnp.int32(0), None, length=3)[0],
    "fori_loop": lambda k: jax.lax.fori_loop(0, 3, lambda _, value: value + k, jnp.int32(0)),
    "while_loop": lambda k: jax.lax.while_loop(lambda v: v < 3, lambda v: v + 1 + k, jnp.int32(0)),
    "cond": lambda k: jax.lax.cond(k > 0, lambda: k, lambda: jnp.int32(0)),
    "float": lambda k: jax.lax.fori_loop(0, 3, lambda _, value: value + k.astype(float), jnp.float32(0)),
}  # fmt: skip


@pytest.mark.parametrize("name", LOOPS)
def test_loops_of_jax_say_what_to_do(name):
    def model():
        k = numpyro.sample("k", dist.Bernoulli(0.4))
        numpyro.sample("y", dist.Normal(1.0 * LOOPS[name](k), 1.0), obs=1.2)

    with pytest.raises(TypeError) as caught:
        exact.fit(model)
    (note, *_) = [note for note in caught.value.__notes__ if "32 bits" in note]
    assert "test_widths.py" in note
    assert 'precision="float32"' in note
    exact.fit(model, precision="float32")
