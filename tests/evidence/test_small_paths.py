"""Paths of small weight, of which there may be many: their draws are of the posterior, trained or not."""

import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

import pathmix

COUNT = 4
X = np.random.default_rng(0).normal(size=(30, COUNT))
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
    few = pathmix.SuccessiveHalving(budget=200, keep=1)  # hardly anything is trained
    return pathmix.SDVI(selection, allocation=few, starts=1).run(0, X, Y)


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


def test_paths_that_are_never_drawn_hold_nothing(posterior):
    lightest = posterior.paths[-1]
    assert lightest.weight < 1e-6
    with pytest.warns(pathmix.PathmixWarning, match="falls short of its evidence"):
        posterior.sample(0, 10, path=lightest.label)
