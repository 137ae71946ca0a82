"""Paths of small weight, of which there may be many: their draws are of the posterior, trained or not."""

from functools import partial

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import optax
import pyro
import pytest
import torch
from scipy import stats

import pathmix

COUNT = 4
X = np.random.default_rng(0).normal(size=(30, COUNT))
FEW = pathmix.SuccessiveHalving(budget=200, keep=1)  # hardly anything is trained
Y = X[:, 0] + np.random.default_rng(1).normal(size=30)


def selection(x, y):
    included = numpyro.sample("included", dist.Bernoulli(0.5).expand([COUNT]).to_event(1))
    chosen = np.flatnonzero(included)
    weights = numpyro.sample("weights", dist.Normal(0, 3).expand([len(chosen)]).to_event(1))
    numpyro.sample("y", dist.Normal(x[:, chosen] @ weights, 1), obs=y)


def conjugate(chosen):
    """Log evidence, and the moments of the weights."""
    x = X[:, chosen]
    precision = x.T @ x + np.eye(len(chosen)) / 9
    mean = np.linalg.solve(precision, x.T @ Y)
    log_evidence = 0.5 * (mean @ precision @ mean - np.linalg.slogdet(9 * precision)[1])
    return log_evidence, mean, np.sqrt(np.diag(np.linalg.inv(precision)))


def coefficients(draws, column):
    for run in draws.runs():
        chosen = list(np.flatnonzero(run["included"]))
        if column in chosen:
            yield run["weights"][chosen.index(column)]


@pytest.fixture(scope="module")
def posterior():
    return pathmix.SDVI(selection, allocation=FEW, starts=1).run(0, X, Y)


def test_draws_are_of_the_posterior(posterior):
    known = [conjugate(np.flatnonzero(path.pinned["included"])) for path in posterior.paths]
    weights = np.exp([log_evidence for log_evidence, *_ in known])
    weights /= weights.sum()
    assert np.abs(weights - [path.weight for path in posterior.paths]).sum() < 0.05
    small = weights[[path.steps < 20 for path in posterior.paths]].sum()
    assert small > 0.3  # which guides know nothing of
    draws = posterior.sample(1, 10_000)
    for column in range(COUNT):
        having = [i for i, path in enumerate(posterior.paths) if path.pinned["included"][column]]
        place = [list(np.flatnonzero(posterior.paths[i].pinned["included"])).index(column) for i in having]
        own = weights[having] / weights[having].sum()
        means = np.array([known[i][1][k] for i, k in zip(having, place, strict=True)])
        sizes = np.array([known[i][2][k] for i, k in zip(having, place, strict=True)])
        mean = own @ means
        deviation = np.sqrt(own @ (sizes**2 + (means - mean) ** 2))
        drawn = np.array(list(coefficients(draws, column)))
        error = deviation / np.sqrt(len(drawn))
        assert drawn.mean() == pytest.approx(mean, abs=5 * error + 0.02)
        assert drawn.std() == pytest.approx(deviation, rel=0.1)


def test_a_path_that_is_hardly_ever_drawn_has_its_draws(posterior):
    lightest = posterior.paths[-1]
    assert lightest.weight < 1e-6
    _, mean, deviation = conjugate(np.flatnonzero(lightest.pinned["included"]))
    drawn = posterior.sample(0, 2_000, path=lightest.label)["weights"]
    assert drawn.mean(axis=0) == pytest.approx(mean, abs=5 * np.max(deviation) / np.sqrt(500))  # particles
    assert drawn.std(axis=0) == pytest.approx(deviation, rel=0.2)


def test_where_memory_is_short_the_lightest_are_the_guides(monkeypatch):
    monkeypatch.setattr("pathmix.evidence.weigh._KEPT_BYTES", 0)
    few = pathmix.SuccessiveHalving(budget=8_500, keep=1)  # enough for all, but not at this rate
    posterior = pathmix.SDVI(selection, allocation=few, optimizer=optax.adam(1e-6), starts=1).run(0, X, Y)
    with pytest.warns(pathmix.PathmixWarning, match="falls short of its evidence"):
        posterior.sample(0, 10, path=posterior.paths[-1].label)
    heavier = next(path for path in posterior.paths if path.weight < 0.01)
    assert heavier.weight > 1e-3 and heavier.log_evidence - heavier.elbo > 10
    _, _, deviation = conjugate(np.flatnonzero(heavier.pinned["included"]))
    drawn = posterior.sample(0, 2_000, path=heavier.label)["weights"]
    assert drawn.std(axis=0) == pytest.approx(deviation, rel=0.2)


def clusters(library, y):
    """Two are improbable; their orders all count."""
    if library == "pyro":
        k = int(pyro.sample("k", pyro.distributions.Categorical(torch.tensor([0.99, 0.01])))) + 1
        means = [pyro.sample(f"mean_{i}", pyro.distributions.Normal(0.0, 3.0)) for i in range(k)]
        parts = pyro.distributions.Normal(torch.stack(means), 1.0)
        mixture = pyro.distributions.MixtureSameFamily(pyro.distributions.Categorical(torch.ones(k)), parts)
        with pyro.plate("data", len(y)):
            pyro.sample("y", mixture, obs=torch.as_tensor(y))
        return
    k = int(numpyro.sample("k", dist.Bernoulli(0.01))) + 1
    means = jnp.stack([numpyro.sample(f"mean_{i}", dist.Normal(0, 3)) for i in range(k)])
    mixture = dist.MixtureSameFamily(dist.Categorical(probs=jnp.ones(k) / k), dist.Normal(means, 1))
    with numpyro.plate("data", len(y)):
        numpyro.sample("y", mixture, obs=y)


@pytest.mark.parametrize("library", ["numpyro", "pyro"])
def test_exchangeable_sites_of_a_small_path(library):
    y = np.array([-1.5, -0.7, 0.1, 0.4, 0.9, 1.3, 2.0])
    allocation = pathmix.SuccessiveHalving(budget=60, keep=1)
    posterior = pathmix.SDVI(partial(clusters, library), allocation=allocation, starts=1).run(0, y)
    path = posterior.paths[1]
    assert path.weight < 0.01
    grid = np.linspace(-10, 10, 401)
    each = stats.norm.pdf(y[:, None], grid)
    both = np.log((each[:, :, None] + each[:, None, :]) / 2).sum(axis=0) + stats.norm.logpdf(grid, 0, 3)
    mass = np.exp(both + stats.norm.logpdf(grid, 0, 3)[:, None])
    mass /= mass.sum()
    gap = (mass * np.abs(grid[:, None] - grid)).sum()
    spread = np.sqrt((mass.sum(axis=0) * grid**2).sum() - (mass.sum(axis=0) * grid).sum() ** 2)
    draws = posterior.sample(0, 4_000, path=path.label)
    assert np.abs(draws["mean_0"] - draws["mean_1"]).mean() == pytest.approx(gap, rel=0.15)
    for name in ("mean_0", "mean_1"):  # in either order
        assert draws[name].std() == pytest.approx(spread, rel=0.15)
