"""Stacking: weights that predict best, against exact leave-one-out densities."""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pyro
import pyro.distributions as pyro_dist
import pytest
import torch
from scipy import optimize, stats

import pathmix
from pathmix.errors import PathmixError
from pathmix.posterior.stacking import best_mixture, left_out
from tests import exact

# Two groups of points: each of two fixed means explains one of them, and a mixture predicts best.
Y = np.concatenate([np.random.default_rng(0).normal(-2, 1, 14), np.random.default_rng(1).normal(2, 1, 6)])
CENTRES = (-2.0, 2.0)


def numpyro_model(y):
    right = int(numpyro.sample("right", dist.Bernoulli(0.5)))
    shift = numpyro.sample("shift", dist.Normal(CENTRES[right], 0.5))
    numpyro.sample("y", dist.Normal(shift, 1.0), obs=y)


def pyro_model(y):
    right = int(pyro.sample("right", pyro_dist.Bernoulli(0.5)))
    shift = pyro.sample("shift", pyro_dist.Normal(CENTRES[right], 0.5))
    with pyro.plate("points", len(y)):
        pyro.sample("y", pyro_dist.Normal(shift, 1.0), obs=y)


def exact_scores():
    """log p(y_i | y_-i, path), in closed form."""
    scores = np.zeros((len(Y), 2))
    for k, centre in enumerate(CENTRES):
        for i in range(len(Y)):
            rest = np.delete(Y, i)
            precision = 4 + len(rest)
            mean = (4 * centre + rest.sum()) / precision
            scores[i, k] = stats.norm.logpdf(Y[i], mean, np.sqrt(1 + 1 / precision))
    return scores


def exact_weight():
    scores = exact_scores()

    def loss(w):
        return -np.mean(np.logaddexp(np.log1p(-w) + scores[:, 0], np.log(w) + scores[:, 1]))

    return optimize.minimize_scalar(loss, bounds=(1e-9, 1 - 1e-9), method="bounded").x


@pytest.mark.parametrize(("model", "y"), [(numpyro_model, Y), (pyro_model, torch.tensor(Y))])
def test_weights_that_predict_best(model, y):
    posterior = exact.fit(model, y, budget=2_000)
    assert posterior.weights["right=0"] > 0.999
    stacked = posterior.reweight("stacking")
    assert stacked.weights["right=1"] == pytest.approx(exact_weight(), abs=0.01)
    assert 0.01 < exact_weight() < 0.99
    assert not stacked.verdict.ok and "predict best" in str(stacked.verdict)
    assert np.isnan(stacked.weight_errors["right=1"])
    assert stacked.reweight("evidence").weights == posterior.weights
    draws = stacked.sample(0, 4_000)
    assert np.mean(draws["right"]) == pytest.approx(stacked.weights["right=1"], abs=0.04)


def test_as_an_option():
    option = exact.fit(numpyro_model, Y, budget=2_000, weights="stacking")
    later = exact.fit(numpyro_model, Y, budget=2_000).reweight("stacking")
    assert option.weights == later.weights and option.weighting == "stacking"


def test_columns_that_cannot_be_smoothed():
    """Ties, and densities next to nothing: plain importance weights tell what they tell."""
    generator = np.random.default_rng(0)
    ties = generator.choice([-1.0, -2.0], size=(1_000, 1))
    far = -1e5 - 500 * generator.exponential(size=(1_000, 1))
    score, khat = left_out(np.concatenate([ties, far], axis=1))
    assert score[0] == pytest.approx(-np.log(np.mean(np.exp(-ties))))
    assert np.isfinite(score).all() and score[1] < -1e5 and khat[0] == np.inf


def test_a_path_that_the_data_contradict_has_no_weight():
    def model(y):
        far = numpyro.sample("far", dist.Bernoulli(0.5))
        x = numpyro.sample("x", dist.Normal(0, 1))
        numpyro.sample("y", dist.Normal(x + 30.0, 0.1) if far else dist.Normal(x, 1), obs=y)

    options = {"allocation": pathmix.Uniform(200), "starts": 1, "progress": False}
    posterior = pathmix.SDVI(model, **options).run(0, np.array([-1.0, 0.5, 0.3]))
    assert posterior.reweight("stacking").weights["far=0"] == pytest.approx(1, abs=1e-3)


def test_left_out_densities():
    centre, draws = CENTRES[0], np.random.default_rng(0)
    mean, precision = (4 * centre + Y.sum()) / (4 + len(Y)), 4 + len(Y)
    shift = draws.normal(mean, precision**-0.5, 20_000)
    score, khat = left_out(stats.norm.logpdf(Y[None], shift[:, None], 1.0))
    np.testing.assert_allclose(score, exact_scores()[:, 0], atol=0.05)
    assert np.all(khat < 0.7)


def test_the_best_mixture_of_three():
    scores = np.random.default_rng(0).normal(0, 2, (50, 3))
    found = best_mixture(scores)

    def loss(free):
        logs = np.append(free, 0.0) - np.logaddexp.reduce(np.append(free, 0.0))
        return -np.mean(np.logaddexp.reduce(scores + logs, axis=1))

    free = optimize.minimize(loss, np.zeros(2)).x
    best = np.exp(np.append(free, 0.0)) / np.exp(np.append(free, 0.0)).sum()
    np.testing.assert_allclose(found, best, atol=2e-3)


def test_observations_that_differ():
    def model(y):
        if numpyro.sample("half", dist.Bernoulli(0.5)):
            y = y[::2]
        numpyro.sample("y", dist.Normal(numpyro.sample("mean", dist.Normal(0, 1)), 1.0), obs=y)

    posterior = exact.fit(model, Y, budget=500, weights="elbo")
    with pytest.raises(PathmixError, match=r"the same observations on all paths.*20 of 'y'"):
        posterior.reweight("stacking")


def test_masks_that_differ():
    def model(y):
        few = bool(numpyro.sample("few", dist.Bernoulli(0.5)))
        mean = numpyro.sample("mean", dist.Normal(0, 1))
        with numpyro.handlers.mask(mask=np.arange(len(y)) < (5 if few else 20)):
            numpyro.sample("y", dist.Normal(mean, 1.0), obs=y)

    with pytest.raises(PathmixError, match="masks differ"):
        exact.fit(model, Y, budget=500, weights="elbo").reweight("stacking")


def test_nothing_observed():
    def model():
        numpyro.factor("weight", jnp.where(numpyro.sample("z", dist.Normal(0, 1)) > 0, 0.0, -1.0))

    with pytest.raises(PathmixError, match="needs observed sites"):
        exact.fit(model, budget=300, weights="elbo").reweight("stacking")


def test_paths_without_free_sites_and_chains():
    def model(y):
        right = int(numpyro.sample("right", dist.Bernoulli(0.5)))
        numpyro.sample("y", dist.Normal(CENTRES[right], 1.0), obs=y)

    scores = stats.norm.logpdf(Y[:, None], np.array(CENTRES), 1.0)
    for posterior in (
        exact.fit(model, Y, budget=100),
        pathmix.DCC(model, iterations=5, progress=False).run(0, Y),
    ):
        stacked = posterior.reweight("stacking")
        assert stacked.weights["right=1"] == pytest.approx(best_mixture(scores)[1], abs=1e-6)
