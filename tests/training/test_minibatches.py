"""Subsampled plates: minibatches in training, the full data in every ELBO that counts."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import optax
import pytest
from scipy import stats

from pathmix.discovery import PriorDiscovery
from pathmix.engine.executables import Executables
from pathmix.engine.requests import answered
from pathmix.frontends.recognise import bind
from pathmix.guides import MeanField
from pathmix.program.seeds import Seed
from pathmix.program.slp import Plate
from pathmix.training.fit import PathFit
from pathmix.training.minibatches import Minibatches
from pathmix.training.options import TrainingOptions
from tests import exact
from tests.paths import target_of

DATA = np.random.default_rng(0).normal(1.5, 1.0, size=60)


def model(y, batch=10):
    shifted = numpyro.sample("shifted", dist.Bernoulli(0.5))
    mean = numpyro.sample("mean", dist.Normal(2.0 if shifted else -2.0, 1))
    with numpyro.plate("data", len(y), subsample_size=batch) as rows:
        numpyro.sample("y", dist.Normal(mean, 1), obs=y[rows])


def local_latents(y, batch=10):
    """Sites inside the subsampled plate: one value for each element, some used at each step."""
    with numpyro.plate("data", len(y), subsample_size=batch):
        z = numpyro.sample("z", dist.Normal(0, 1))
        numpyro.sample("y", dist.Normal(z, 1), obs=numpyro.subsample(jnp.asarray(y), event_dim=0))


def evidence(mean):
    covariance = np.eye(len(DATA)) + 1.0
    return np.log(0.5) + stats.multivariate_normal.logpdf(DATA, np.full(len(DATA), mean), covariance)


def test_weights_use_the_full_data():
    posterior = exact.fit(model, DATA, budget=8_000)
    truth = {"shifted=1": evidence(2.0), "shifted=0": evidence(-2.0)}
    for path in posterior.paths:
        assert path.elbo == pytest.approx(truth[path.label], abs=0.3)
    assert posterior.weights["shifted=1"] > 0.99


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("program", [model, local_latents])
def test_minibatch_densities_are_unbiased(program):
    """Averaged over all disjoint minibatches, the log-density is that of the full data."""
    path = PriorDiscovery(16).discover(bind(program, (DATA,)), Seed.of(0), lambda slp, draws: None).paths[0]
    assert path.slp.plates == (Plate("data", 60, 10),)
    target = target_of(path)
    u = jnp.asarray(np.random.default_rng(1).normal(size=target.dim))
    batches = jnp.asarray(np.random.default_rng(2).permutation(60).reshape(6, 10))
    full = target.formula.density(u, target.arguments)
    parts = jax.vmap(lambda rows: target.formula.density(u, target.arguments, [rows]))(batches)
    assert float(parts.log_joint.mean()) == pytest.approx(float(full.log_joint), rel=1e-10)
    assert float(parts.log_joint.std()) > 0.1


def test_local_latents_are_fitted():
    posterior = exact.fit(local_latents, DATA, budget=10_000)
    draws = posterior.sample(0, 500)["z"]
    assert draws.shape == (500, 60)
    np.testing.assert_allclose(draws.mean(axis=0), DATA / 2, atol=0.35)


def test_streams_are_shuffles():
    plate = Plate("data", 12, 5)
    minibatches = Minibatches((plate,), 2, Seed.of(0))
    (rows,) = minibatches.rows(0, 20)
    assert rows.shape == (20, 2, 5)
    assert all(len(set(row)) == 5 for row in rows.reshape(40, 5))
    counts = np.bincount(rows.ravel(), minlength=12)
    assert counts.min() > 8 and counts.sum() == 200
    np.testing.assert_array_equal(rows, minibatches.rows(0, 20)[0])
    assert not np.array_equal(rows, minibatches.rows(1, 20)[0])


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(("estimator", "own"), [("reparam", True), ("score", False), ("truncated", False)])
def test_particles_have_minibatches_of_their_own_unless_they_are_compared(estimator, own):
    """Six disjoint minibatches are all the data, and the mean's gradient is linear in them."""
    whole, in_parts = (location_after_a_step(estimator, batch) for batch in (len(DATA), 10))
    assert (in_parts == pytest.approx(whole, rel=1e-10)) == own


def location_after_a_step(estimator, batch):
    program = bind(model, (DATA, batch))
    path = PriorDiscovery(16).discover(program, Seed.of(0), lambda slp, draws: None).paths[0]
    target = target_of(path)
    options = TrainingOptions(optax.sgd(1e-3), particles=6, elbo_samples=10)
    fit = PathFit(target, MeanField(), estimator, options, Executables(), Seed.of(0))
    start = fit.start_from(np.array([[-1.0], [1.0]]))
    answered(fit.advance(start, 1, 0.0, told=lambda turn: None), fit.executables.answer)
    return float(start.state.params.loc[0])
