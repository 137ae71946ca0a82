"""Random numbers that belong to no site are refused, or told of, however few values they can have."""

import random

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
import pyro
import pyro.distributions as pyro_dist
import pytest
import torch
from numpyro import handlers

import pathmix
from pathmix.errors import HiddenRandomnessError
from tests.paths import discover

FEW = {"allocation": pathmix.SuccessiveHalving(300), "progress": False}


def drawn():
    return numpyro.sample("m", dist.Normal(0, 1)), lambda x: numpyro.sample("y", dist.Normal(x, 1), obs=1.0)


def drawn_in_pyro():
    x = pyro.sample("m", pyro_dist.Normal(0.0, 1.0))
    return x, lambda x: pyro.sample("y", pyro_dist.Normal(x, 1.0), obs=torch.tensor(1.0))


GENERATOR, LEGACY = np.random.default_rng(7), np.random.RandomState(7)
OF_PYTHON, OF_MACHINE = random.Random(7), random.SystemRandom()
TORCH = torch.Generator().manual_seed(7)

DRAWS = {
    "random": lambda: 3.0 * (random.random() < 0.3),
    "choice": lambda: random.choice([0.0, 3.0]),
    "numpy": lambda: 3.0 * np.random.randint(2),
    "generator": lambda: 3.0 * (np.random.default_rng().random() < 0.3),
    "generator from before": lambda: 3.0 * (GENERATOR.random() < 0.3),
    "legacy generator from before": lambda: 3.0 * LEGACY.randint(2),
    "generator of Python's from before": lambda: OF_PYTHON.choice([0.0, 3.0]),
    "generator of the machine's": lambda: OF_MACHINE.choice([0.0, 3.0]),
}


@pytest.mark.parametrize("library", [drawn, drawn_in_pyro], ids=["numpyro", "pyro"])
@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_few_values_are_refused(draw, library):
    """Wrong in one of a thousand runs: 21 draws that are all the same, of probability 0.7."""

    def model():
        x, observe = library()
        observe(x + draw())

    with pytest.raises(HiddenRandomnessError, match="another time, at the same values"):
        discover(model, samples=20)


def test_few_values_of_pytorch_are_refused():
    def model():
        x, observe = drawn_in_pyro()
        observe(x + 3.0 * torch.randint(2, (), generator=TORCH))

    with pytest.raises(HiddenRandomnessError):
        discover(model, samples=20)


@pytest.mark.parametrize("library", [drawn, drawn_in_pyro], ids=["numpyro", "pyro"])
def test_what_makes_no_difference_is_told(library):
    def model():
        x, observe = library()
        observe(x + 0.0 * np.random.default_rng().random())

    (note,) = [
        note
        for note in pathmix.SDVI(model, **FEW).run(0).notes
        if note.startswith("The program takes random")
    ]
    assert "In 21 runs at the same values that made no difference" in note


@pytest.mark.parametrize("library", [drawn, drawn_in_pyro], ids=["numpyro", "pyro"])
def test_seeded_numbers_are_constants(library):
    def model():
        x, observe = library()
        random.seed(3)
        np.random.seed(3)
        observe(x + random.random() + np.random.random() + np.random.default_rng(3).random())

    posterior = pathmix.SDVI(model, **FEW).run(0)
    assert not [note for note in posterior.notes if "random" in note]
    shift = random.Random(3).random() + np.random.RandomState(3).random_sample()
    shift += np.random.default_rng(3).random()
    exact = -0.5 * np.log(4 * np.pi) - (1 - shift) ** 2 / 4
    assert posterior.log_evidence == pytest.approx(exact, abs=0.01)


def key_in_density():
    x, observe = drawn()
    observe(x + jax.random.normal(numpyro.prng_key()))


def key_in_decision():
    x, observe = drawn()
    observe(x + 3 if jax.random.bernoulli(numpyro.prng_key()) else x)


def hidden_continuous():
    x, observe = drawn()
    with handlers.block(hide=["e"]):
        x = x + numpyro.sample("e", dist.Normal(0, 1))
    observe(x)


def hidden_discrete():
    x, observe = drawn()
    with handlers.block():
        z = numpyro.sample("z", dist.Bernoulli(0.01))
    observe(x + 3 * z)


def hidden_prior():
    with handlers.block():
        scale = numpyro.sample("scale", dist.LogNormal(0, 1))
    numpyro.sample("y", dist.Normal(numpyro.sample("m", dist.Normal(0, scale)), 1), obs=1.0)


KEYS = (key_in_density, key_in_decision, hidden_continuous, hidden_discrete, hidden_prior)


@pytest.mark.parametrize("model", KEYS, ids=lambda model: model.__name__)
def test_keys_of_numpyro_are_refused_where_something_depends_on_them(model):
    with pytest.raises(HiddenRandomnessError, match=r"numpyro.prng_key gave at test_hidden.py:\d+"):
        discover(model, samples=20)


def test_keys_that_nothing_depends_on_are_harmless():
    def model():
        x, observe = drawn()
        with handlers.block():
            numpyro.sample("unused", dist.Normal(x, 1))
            numpyro.deterministic("mean", x)
        jax.random.normal(numpyro.prng_key())
        observe(x)

    exact = -0.5 * np.log(4 * np.pi) - 0.25
    assert pathmix.SDVI(model, **FEW).run(0).log_evidence == pytest.approx(exact, abs=1e-3)


def test_initial_values_of_parameters_may_be_drawn():
    def model():
        x, observe = drawn()
        observe(x + 0.0 * numpyro.param("w", lambda key: jax.random.normal(key, ())))

    exact = -0.5 * np.log(4 * np.pi) - 0.25
    assert pathmix.SDVI(model, **FEW).run(0).log_evidence == pytest.approx(exact, abs=1e-3)
