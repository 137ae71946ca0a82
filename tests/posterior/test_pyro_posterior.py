"""What a Pyro user does with the result: tensors, and a guide for Pyro's own inference."""

from functools import cache

import numpy as np
import pyro
import pyro.distributions as dist
import pytest
import torch
from pyro.infer import Predictive, Trace_ELBO
from scipy import stats

import pathmix
from tests import exact
from tests.zoo import programs, pyro_programs


def grouped(y):
    """A latent value for each element of a plate; one of the paths has a scale as well."""
    if pyro.sample("wide", dist.Bernoulli(0.5)) == 1:
        scale = pyro.sample("scale", dist.Gamma(2.0, 2.0))
    else:
        scale = torch.tensor(1.0)
    with pyro.plate("groups", 4):
        effect = pyro.sample("effect", dist.Normal(0, scale))
        pyro.sample("y", dist.Normal(effect, 1), obs=y)


def subsampled(y):
    shift = pyro.sample("shift", dist.Bernoulli(0.4))
    offset = 2.0 if shift == 1 else 0.0
    with pyro.plate("data", 4, subsample_size=2) as rows:
        effect = pyro.sample("effect", dist.Normal(offset, 1))
        pyro.sample("y", dist.Normal(effect, 1), obs=y[rows])


GROUPS = torch.tensor([1.0, -1.5, 0.5, 2.0])
MODELS = {
    pyro_programs.two_branches: (torch.tensor(2.0),),
    pyro_programs.spike_and_slab: (torch.tensor(1.5),),
    grouped: (GROUPS,),
    subsampled: (GROUPS,),
}


@cache
def posterior_of(model):
    return exact.fit(model, *MODELS[model], budget=10_000)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_the_guide_has_the_elbo_of_the_posterior(model):
    posterior, count = posterior_of(model), 400
    pyro.set_rng_seed(1)
    guide = posterior.as_pyro_guide()
    losses = np.array([Trace_ELBO().loss(model, guide, *MODELS[model]) for _ in range(count)])
    error = losses.std() / np.sqrt(count)
    # The ELBO of the posterior is itself from 1,000 draws; five errors fail once in a million.
    assert -losses.mean() == pytest.approx(posterior.elbo, abs=5 * error * np.sqrt(1 + count / 1_000) + 1e-4)


def test_the_guide_predicts():
    model = pyro_programs.two_branches
    guide = posterior_of(model).as_pyro_guide()
    pyro.set_rng_seed(0)
    y = Predictive(model, guide=guide, num_samples=600, return_sites=["y"])(None)["y"]
    # z given y is N(±3, 1) updated by y ~ N(z, 2), and a new y adds variance 4 to it.
    weights, means = np.array([0.917, 0.083]), np.array([3, -3]) + (2 - np.array([3, -3])) / 5
    mean = weights @ means
    deviation = np.sqrt(weights @ (means - mean) ** 2 + 0.8 + 4)
    assert y.shape == (600,)
    assert float(y.mean()) == pytest.approx(mean, abs=5 * deviation / np.sqrt(600))


def test_the_guide_of_a_model_with_masked_elements():
    def model(y):
        with pyro.plate("n", 2), pyro.poutine.mask(mask=torch.tensor([True, False])):
            z = pyro.sample("z", dist.Normal(0.0, 1.0))
        pyro.sample("y", dist.Normal(z[0], 1.0), obs=y)

    y = torch.tensor(1.0)
    guide = exact.fit(model, y, budget=4_000, guide="fullrank", weights="elbo").as_pyro_guide()
    losses = [Trace_ELBO().loss(model, guide, y) for _ in range(20)]
    # The guide is exact, so every loss is.
    np.testing.assert_allclose(losses, -stats.norm.logpdf(1.0, 0, np.sqrt(2)), atol=0.05)


def test_the_guide_follows_pyros_seed():
    guide = posterior_of(grouped).as_pyro_guide()

    def draw():
        pyro.set_rng_seed(3)
        return pyro.poutine.trace(guide).get_trace(GROUPS).nodes["effect"]["value"]

    assert torch.equal(draw(), draw())
    assert draw().dtype == torch.get_default_dtype()


def test_a_guide_is_for_pyro_models():
    posterior = exact.fit(programs.one_path, 0.5, budget=100, weights="elbo")
    with pytest.raises(pathmix.errors.PathmixError, match="NumPyro model"):
        posterior.as_pyro_guide()


def test_draws_as_tensors():
    draws = exact.fit(grouped, GROUPS, budget=500, weights="elbo").sample(0, 200)
    tensors = draws.to_torch()
    assert tensors["effect"].shape == (200, 4) and tensors["effect"].dtype == torch.get_default_dtype()
    lacks = draws["wide"] == 0
    assert torch.equal(torch.isnan(tensors["scale"]), torch.as_tensor(lacks))
    assert lacks.any() and not lacks.all()


def test_whole_numbers_stay_whole_unless_some_are_missing():
    draws = pathmix.posterior.draws.Draws(
        [
            (np.array([0]), {"k": np.array([1]), "some": np.array([1])}),
            (np.array([1]), {"k": np.array([2])}),
        ],
        np.array([0, 1]),
    ).to_torch()
    assert draws["k"].dtype == torch.int64
    assert draws["some"].tolist()[0] == 1.0 and torch.isnan(draws["some"][1])


def test_predictions_and_densities():
    posterior = posterior_of(pyro_programs.two_branches)
    y = posterior.predict(0, 500, torch.tensor(2.0))["y"]
    # The predictive distribution has mean 2.4 and deviation 2.6; this is five standard errors.
    assert y.shape == (500,) and abs(y.mean() - 2.4) < 0.6
    inside = posterior.log_prob({"x": 1.0, "z2": torch.tensor(2.5)})
    assert np.isfinite(inside)
    assert posterior.log_prob({"x": -1.0, "z1": 2.5}) < inside
    with pytest.raises(pathmix.errors.ValueLookupError, match="lack the site 'z1'"):
        posterior.log_prob({"x": -1.0, "z2": 2.5})
