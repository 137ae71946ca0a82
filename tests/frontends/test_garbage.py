"""The values of a batch of runs are let go with the run that needed them, before any garbage is collected."""

import gc
import weakref

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist

import pathmix
from pathmix.frontends.numpyro import lazily


def test_no_recorded_run_is_left_behind(monkeypatch):
    def model():
        k = int(numpyro.sample("k", dist.Categorical(probs=jnp.full(6, 1 / 6))))
        z = numpyro.sample("z", dist.Normal(float(k), 1.0))
        if z > 2:
            numpyro.sample("w", dist.Normal(z, 1.0))

    made, left = [], []

    def begin(self, source, before=lazily.Lazily.begin):
        left.append(sum(one() is not None for one in made))
        made.append(weakref.ref(self))
        before(self, source)

    monkeypatch.setattr(lazily.Lazily, "begin", begin)
    gc.collect()
    gc.disable()
    try:
        pathmix.SDVI(
            model,
            discovery=pathmix.PriorDiscovery(500),
            allocation=pathmix.SuccessiveHalving(budget=50, keep=2),
            progress=False,
        ).run(0)
    finally:
        gc.enable()
    assert len(made) > 12 and max(left) <= 1
