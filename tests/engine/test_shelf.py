"""Programs with more structures than executables can be kept: what was traced is not traced again."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

import pathmix
from pathmix.engine.executables import Executables
from pathmix.engine.requests import Request
from pathmix.engine.shared import Shared
from pathmix.engine.shelf import Shelf
from tests.cluster.programs import bits

pytestmark = pytest.mark.usefixtures("engine")


def asked_for(number, traced, function=jnp.sin):
    def make():
        def member(common, fixed, moving):
            traced.append(number)
            return {"found": function(number * moving["x"]) + fixed, "number": jnp.asarray(number)}

        return member

    return Request(("f", number), make, np.float64(2.0), {"x": np.arange(3.0)})


def test_what_made_room_is_read_again_with_the_same_answers(monkeypatch):
    requests, traced = [asked_for(number, []) for number in range(12)], []
    expected = [Executables().answer([one])[0] for one in requests]
    monkeypatch.setattr("pathmix.engine.executables.MOST_KEPT", 4)
    executables = Executables()
    requests = [asked_for(number, traced) for number in range(12)]
    for _ in range(3):
        for one, answer in zip(requests, expected, strict=True):
            (found,) = executables.answer([one])
            assert found.keys() == answer.keys()
            assert all(np.array_equal(found[name], answer[name]) for name in answer)
    assert len(executables) == 4
    # The first ones were traced when nobody knew how many there would be.
    assert all(traced.count(number) <= 2 for number in range(12)) and traced.count(11) == 1


def test_what_calls_python_is_traced_again(monkeypatch):
    monkeypatch.setattr("pathmix.engine.executables.MOST_KEPT", 2)
    executables, traced = Executables(), []

    def on_host(x):
        return jax.pure_callback(np.tanh, jax.ShapeDtypeStruct(x.shape, x.dtype), x)

    for _ in range(2):
        for number in range(5):
            (found,) = executables.answer([asked_for(number, traced, on_host)])
            assert np.array_equal(found["found"], np.tanh(number * np.arange(3.0)) + 2.0)


def test_what_does_not_come_again_is_not_written_down(monkeypatch):
    def refused(*_):
        raise AssertionError

    monkeypatch.setattr("pathmix.engine.executables.MOST_KEPT", 2)
    monkeypatch.setattr(Shelf, "put", refused)
    executables = Executables()
    for number in range(5):
        (found,) = executables.answer([replace(asked_for(number, []), comes_again=False)])
        assert found["number"] == number


def test_an_answer_does_not_hold_those_of_the_whole_batch():
    def make():
        return lambda common, fixed, moving: {"few": moving, "many": jnp.zeros(10_000) + moving}

    requests = [Request("g", make, (), np.float64(number)) for number in range(8)]
    for answer in Executables().answer(requests):
        assert all(leaf.base is None or leaf.base.nbytes <= 8 * 10_000 for leaf in answer.values())


@pytest.mark.parametrize("threads", [1, 2])
def test_a_posterior_has_the_same_bits(monkeypatch, threads):
    links = (jnp.sin, jnp.tanh, jnp.arctan)

    def model(y):
        k = int(numpyro.sample("k", dist.Categorical(probs=jnp.full(3, 1 / 3))))
        z = numpyro.sample("z", dist.Normal(0.0, 1.0))
        numpyro.sample("y", dist.Normal(links[k](z), 1.0), obs=y)

    def run(threads):
        allocation = pathmix.SuccessiveHalving(budget=400, keep=1)
        discovery = pathmix.PriorDiscovery(30)
        return pathmix.SDVI(
            model, discovery=discovery, allocation=allocation, threads=threads, progress=False
        ).run(0, 0.5)

    quiet, read, lowered = run(2), [], Shelf.lowered

    def told(self, key, args, options):
        found = lowered(self, key, args, options)
        read.append(found is not None)
        return found

    monkeypatch.setattr(Shelf, "lowered", told)
    monkeypatch.setattr("pathmix.engine.executables.MOST_KEPT", 2)
    monkeypatch.setattr("pathmix.engine.executables._everywhere", Shared(0))
    assert bits(run(threads)) == bits(quiet)
    assert sum(read) > 10


def test_what_takes_turns_is_not_built_for_every_turn(monkeypatch):
    """Twelve structures, of which six can be kept: each is built once in a phase."""
    monkeypatch.setattr("pathmix.engine.executables.MOST_KEPT", 6)
    monkeypatch.setattr("pathmix.engine.executables._everywhere", Shared(0))

    def model(y):
        k = int(numpyro.sample("k", dist.Categorical(probs=jnp.full(12, 1 / 12))))
        z = numpyro.sample("z", dist.Normal(0.0, 1.0))
        for _ in range(k):
            z = jnp.sin(z)
        numpyro.sample("y", dist.Normal(z, 1.0), obs=y)

    inference = pathmix.SDVI(
        model,
        discovery=pathmix.PriorDiscovery(100),
        allocation=pathmix.Uniform(budget=12 * 1_500),  # six turns
        starts=1,
        stop_early=False,
        weights="elbo",
        threads=2,
        progress=False,
    )
    inference.run(0, 0.5)
    assert inference._executables.built <= 4 * 12
