"""Leaps to where log densities point, against normals that are known."""

import math

import jax.numpy as jnp
import numpy as np
import numpyro
import pyro
import pytest
import torch
from scipy import stats

from pathmix.engine.executables import Executables
from pathmix.engine.requests import answered
from pathmix.evidence.leap import leap, terms
from pathmix.evidence.scout import scout
from pathmix.evidence.search import BLOCK, tempered_weights
from pathmix.evidence.settle import quick
from pathmix.program.seeds import Seed
from tests.evidence.searching import fit_of, paths_of, search_of

NUMBERS = {numpyro: jnp.asarray, pyro: torch.tensor}


def normal(dim, seed):
    generator = np.random.default_rng(seed)
    root = generator.normal(size=(dim, dim)) / 20 + np.eye(dim) / 50
    return generator.normal(size=dim) * 300, root @ root.T


def log_density(vectors, loc, covariance):
    apart = vectors - loc
    return -0.5 * np.sum(apart * np.linalg.solve(covariance, apart.T).T, axis=1) + 17.0


@pytest.mark.parametrize("dim", [1, 2, 5, 12])
def test_a_normal_is_found_at_once_however_far_away_it_is(dim):
    loc, covariance = normal(dim, dim)
    vectors = np.random.default_rng(0).normal(size=(2_000, dim))
    weights, _ = tempered_weights(log_density(vectors, loc, covariance), 3.0 * terms(dim))
    found = leap(vectors, log_density(vectors, loc, covariance), weights)
    assert found is not None
    deviations = np.sqrt(np.diag(covariance))
    assert np.all(np.abs(found.loc - loc) < 0.05 * deviations)
    np.testing.assert_allclose(found.factor @ found.factor.T, covariance, rtol=1e-2, atol=1e-4)


def test_what_has_no_maximum_is_left_alone():
    vectors = np.random.default_rng(1).normal(size=(500, 2))
    saddle = vectors[:, 0] ** 2 - vectors[:, 1] ** 2
    assert leap(vectors, saddle, np.ones(500)) is None


def test_draws_that_do_not_tell_are_left_alone():
    generator = np.random.default_rng(2)
    few, many = generator.normal(size=(10, 3)), generator.normal(size=(500, 1)) * np.ones(3)
    unknown = np.full(500, np.nan)
    assert leap(few, -np.sum(few**2, axis=1), np.ones(10)) is None
    assert leap(many, unknown, np.ones(500)) is None
    assert leap(many[:, :1], -(many[:, 0] ** 2), np.eye(500)[0]) is None


def test_draws_in_a_plane_are_left_alone():
    line = np.random.default_rng(3).normal(size=(500, 1)) * np.ones(2)
    found = leap(line, -np.sum(line**2, axis=1), np.ones(500))
    assert found is None


@pytest.mark.parametrize("sampler", [numpyro, pyro], ids=["numpyro", "pyro"])
def test_a_posterior_hundreds_of_deviations_away_takes_one_leap(sampler):
    def model():
        z = sampler.sample("z", sampler.distributions.Normal(0.0, 1.0))
        sampler.sample("y", sampler.distributions.Normal(z, 0.01), obs=NUMBERS[sampler](50.0))

    (path,) = paths_of(model)
    search, answer = search_of(path)
    opinion = answered(quick(search, hopeless=0.0), answer)
    exact = -(50.0**2) / (2 * 1.0001) - 0.5 * math.log(2 * math.pi * 1.0001)
    assert opinion.found.log_evidence == pytest.approx(exact, abs=0.1)
    assert search.fit.evaluations == 2 * BLOCK


def test_a_slope_without_an_end_is_left_alone():
    vectors = np.random.default_rng(4).normal(size=(2_000, 1))
    for slope in (3.0, -300.0):
        assert leap(vectors, slope * vectors[:, 0], np.ones(2_000)) is None


def test_a_leap_to_where_numbers_overflow_is_not_taken():
    def model():
        rate = numpyro.sample("rate", numpyro.distributions.Gamma(2.0, 1.0))
        numpyro.sample("y", numpyro.distributions.Poisson(rate), obs=100_000)

    (path,) = paths_of(model)
    fit = fit_of(path, Executables())
    fit.start = None
    answered(scout(fit, path.draws, [], Seed.of(0)), fit.executables.answer)
    exact = stats.nbinom(2, 0.5).logpmf(100_000)
    assert not fit.met_nan
    assert fit.evidence.log_evidence == pytest.approx(exact, abs=0.1)


def test_a_first_look_does_not_settle_what_can_be_permuted():
    def model(y):
        means = [numpyro.sample(f"mean_{i}", numpyro.distributions.Normal(0.0, 5.0)) for i in range(2)]
        shares = numpyro.distributions.Categorical(probs=jnp.ones(2) / 2)
        parts = numpyro.distributions.Normal(jnp.stack(means), 1.0)
        mixture = numpyro.distributions.MixtureSameFamily(shares, parts)
        numpyro.sample("y", mixture.expand([len(y)]), obs=y)

    (path,) = paths_of(model, jnp.array([-2.0, -1.8, 2.0, 2.1]))
    fit = fit_of(path, Executables())
    fit.start = None
    answered(scout(fit, path.draws, [], Seed.of(0)), fit.executables.answer)
    assert not fit.evidence.settled
