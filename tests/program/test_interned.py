"""What many paths have in common is there once."""

import gc

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pyro
import pyro.distributions as pyro_dist
import pytest
import torch

from pathmix.program.interned import _by_content, interned
from tests.paths import discover, target_of

Y = np.random.default_rng(0).normal(size=1_000)


def numpyro_model(y):
    k = int(numpyro.sample("k", dist.Categorical(probs=np.ones(4) / 4)))
    numpyro.sample("y", dist.Normal(numpyro.sample("z", dist.Normal(float(k), 1.0)), 1.0), obs=y)


def pyro_model(y):
    k = int(pyro.sample("k", pyro_dist.Categorical(torch.ones(4) / 4)))
    z = pyro.sample("z", pyro_dist.Normal(float(k), 1.0))
    with pyro.plate("rows", len(y)):
        pyro.sample("y", pyro_dist.Normal(z, 1.0), obs=y)


@pytest.mark.parametrize(("model", "y"), [(numpyro_model, Y), (pyro_model, torch.tensor(Y))])
def test_the_data_of_all_paths(model, y, engine):
    targets = [target_of(path) for path in discover(model, y, samples=100).paths]
    assert len(targets) == 4
    large = [
        [leaf for leaf in jax.tree.leaves(target.arguments) if leaf.size == len(Y)] for target in targets
    ]
    assert large[0] and all(len(own) == len(large[0]) for own in large)
    assert all(leaf is first for own in large for leaf, first in zip(own, large[0], strict=True))


def test_other_numbers_types_and_shapes_are_kept_apart(engine):
    zeros = np.zeros(256)
    arrays = [zeros, zeros + 1, zeros.reshape(16, 16), zeros.astype(np.int64), -zeros, zeros[::-1].copy()]
    found = [interned(jnp.asarray(array)) for array in arrays]
    assert len(set(map(id, found))) == 5 and found[-1] is found[0]
    for array, one in zip(arrays, found, strict=True):
        assert one.dtype == array.dtype and one.shape == array.shape
        np.testing.assert_array_equal(one, array)
    assert np.signbit(found[4]).all()
    key = jax.random.key(0, impl="rbg")
    assert interned(jnp.tile(key, 100)).shape == (100,)


def test_nothing_is_kept_that_nobody_has(engine):
    gc.collect()
    before = len(_by_content)
    array = interned(jnp.asarray(np.random.default_rng(1).normal(size=500)))
    assert len(_by_content) == before + 1
    del array
    gc.collect()
    assert len(_by_content) == before


def test_other_numbers_with_the_same_sum(monkeypatch, engine):
    monkeypatch.setattr("pathmix.program.interned.zlib.crc32", lambda content: 7)
    first, second = interned(jnp.asarray(Y)), interned(jnp.asarray(Y + 1))
    assert np.array_equal(first, Y) and np.array_equal(second, Y + 1)
    assert interned(jnp.asarray(Y)) is first
