"""Tempered SMC from around the prior or the guide: unbiased, inside regions, with an error of its own."""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy import stats

from pathmix.engine.requests import answered
from pathmix.evidence.populations import tempered
from tests import exact
from tests.evidence.searching import paths_of, search_of
from tests.zoo import programs

pytestmark = pytest.mark.usefixtures("engine")
X = np.random.default_rng(0).normal(size=(20, 6))
Y = X @ np.linspace(-1, 1, 6) + np.random.default_rng(1).normal(size=20)


def regression(x, y):
    weight = numpyro.sample("weight", dist.Normal(0, 1).expand([6]).to_event(1))
    numpyro.sample("y", dist.Normal(x @ weight, 1), obs=y)


def test_a_regression():
    (path,) = paths_of(regression, X, Y)
    search, answer = search_of(path)
    found = answered(tempered(search, 10**6), answer)
    truth = stats.multivariate_normal.logpdf(Y, np.zeros(20), X @ X.T + np.eye(20))
    assert found.log_evidence == pytest.approx(truth, abs=4.5 * found.error) and found.error < 0.15
    mean = np.linalg.solve(X.T @ X + np.eye(6), X.T @ Y)
    np.testing.assert_allclose(found.particles.weights @ found.particles.vectors, mean, atol=0.1)


def test_from_the_guide_on():
    """Data that are far off for the prior: its particles run out of temperatures, the guide's do not."""
    (path,) = paths_of(regression, X, Y * 30)
    search, answer = search_of(path, steps=4_000)
    guide = answered(search.from_guide(), answer)
    found = answered(tempered(search, 300_000, guide.drawn), answer)
    truth = stats.multivariate_normal.logpdf(30 * Y, np.zeros(20), X @ X.T + np.eye(20))
    assert not found.from_prior and answered(tempered(search, 300_000), answer) is None
    assert found.log_evidence == pytest.approx(truth, abs=4.5 * found.error) and found.error < 0.15


def test_two_modes_keep_their_shares():
    def model(y):
        z = numpyro.sample("z", dist.Normal(0.3, 3))
        numpyro.sample("y", dist.Normal(z**2, 0.5), obs=y)

    (path,) = paths_of(model, 4.0)
    search, answer = search_of(path)
    found = answered(tempered(search, 10**6), answer)
    grid = np.linspace(-6, 6, 20_001)
    density = stats.norm.pdf(grid, 0.3, 3) * stats.norm.pdf(4.0, grid**2, 0.5)
    assert found.log_evidence == pytest.approx(np.log(np.trapezoid(density, grid)), abs=4.5 * found.error)
    right = np.trapezoid(density * (grid > 0), grid) / np.trapezoid(density, grid)
    share = found.particles.weights @ (found.particles.vectors[:, 0] > 0)
    assert share == pytest.approx(right, abs=0.08)


@pytest.mark.parametrize("number", [0, 1])
def test_regions_are_kept(number):
    path = paths_of(programs.sum_branch, 1.0)[number]
    search, answer = search_of(path)
    found = answered(tempered(search, 10**6), answer)
    truth = exact.sum_branch(1.0)[path.slp.sites[-1].name]
    assert found.log_evidence == pytest.approx(truth, abs=4.5 * found.error)
    assert np.all(np.asarray(answered(search.fit.densities(found.particles.vectors), answer).inside))


def test_without_enough_temperatures_there_is_no_answer():
    (path,) = paths_of(regression, X, Y * 30)
    search, answer = search_of(path)
    assert answered(tempered(search, 10**5), answer) is None


def test_a_density_that_is_nowhere():
    def model():
        x = numpyro.sample("x", dist.Normal(0, 1))
        numpyro.factor("never", jnp.where(x < 1e9, -jnp.inf, 0.0))

    (path,) = paths_of(model)
    search, answer = search_of(path)
    assert answered(tempered(search, 10**6), answer) is None
