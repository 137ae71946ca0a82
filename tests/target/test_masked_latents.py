"""Latent elements under a mask have no density: they are not fitted, and the ELBO stays below log Z."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pyro
import pytest
import torch
from scipy import stats

from pathmix import Status
from pathmix.discovery import PriorDiscovery
from tests import exact
from tests.frontends.test_observations import both, tools

FEW = PriorDiscovery(100)
DATA, SEEN = np.array([1.0, 0.0, 1.0, 2.0]), np.array([True, False, True, True])


def arrays(in_pyro):
    return (torch.tensor(DATA), torch.tensor(SEEN)) if in_pyro else (jnp.asarray(DATA), jnp.asarray(SEEN))


def hide(in_pyro, mask):
    return (pyro.poutine if in_pyro else numpyro.handlers).mask(mask=mask)


@both
def test_imputing_is_the_same_likelihood(in_pyro):
    sample, d, _ = tools(in_pyro)
    data, seen = arrays(in_pyro)
    plate = pyro.plate if in_pyro else numpyro.plate

    def model():
        if sample("imputed", d.Bernoulli(0.5)):
            with plate("rows", 4):
                sample("y", d.Normal(0.0, 1.0), obs=data, obs_mask=seen)
        else:
            sample("y_seen", d.Normal(0.0, 1.0), obs=data[seen])

    log_z = stats.norm.logpdf(DATA[SEEN]).sum()
    posterior = exact.fit(model, budget=2_000, discovery=FEW)
    assert posterior.elbo == pytest.approx(log_z, abs=1e-3) and posterior.elbo <= log_z + 1e-9
    by_elbo = posterior.reweight("elbo").weights
    assert by_elbo == pytest.approx({"imputed=1": 0.5, "imputed=0": 0.5}, abs=1e-3)


@both
@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")])
def test_names_do_not_matter(in_pyro, names):
    sample, d, _ = tools(in_pyro)
    _, seen = arrays(in_pyro)
    first, second = names

    def model():
        x = sample(first, d.Normal(0.0, 1.0).expand([4]).to_event(1))
        with hide(in_pyro, seen):
            sample(second, d.Normal(0.0, 1.0).expand([4]))
        sample("y", d.Normal(x.sum(), 1.0), obs=x.new_tensor(1.0) if in_pyro else 1.0)

    log_z = stats.norm.logpdf(1.0, 0, np.sqrt(5))
    posterior = exact.fit(model, budget=4_000, discovery=FEW, guide="fullrank", weights="elbo")
    assert posterior.elbo == pytest.approx(log_z, abs=0.02) and posterior.elbo <= log_z + 1e-3


@both
def test_an_element_that_matters_only_far_from_prior_draws_is_fitted(in_pyro):
    """A masked Uniform(0, 1) is like one without a mask: its density is one."""
    sample, d, array = tools(in_pyro)
    where = torch.where if in_pyro else jnp.where

    def model(y):
        a = sample("a", d.Normal(0.0, 1.0))
        with hide(in_pyro, False):
            z = sample("z", d.Uniform(0.0, 1.0))
        sample("at", d.Normal(a, 0.1), obs=array(3.5))
        sample("y", d.Normal(where(a > 2.7, z, 0.0 * z), 0.1), obs=y)

    log_z = stats.norm.logpdf(3.5, 0, np.sqrt(1.01)) + np.log(np.diff(stats.norm.cdf([0, 1], 0.5, 0.1))[0])
    posterior = exact.fit(model, array(0.5), budget=8_000, discovery=FEW)
    assert posterior.elbo == pytest.approx(log_z, abs=0.05)
    assert posterior.sample(0, 1_000)["z"].std() == pytest.approx(0.1, rel=0.2)


@both
def test_an_element_that_a_computed_index_may_choose_is_fitted(in_pyro):
    """The index is 1 for a > 3: there the masked element, uniform on (0, 1), is what is measured."""
    sample, d, array = tools(in_pyro)

    def model(y):
        a = sample("a", d.Normal(0.0, 1.0))
        with hide(in_pyro, array([1.0, 0.0]) > 0):
            z = sample("z", d.Uniform(0.0, 1.0).expand([2]))
        sample("at", d.Normal(a, 0.1), obs=array(4.5))
        index = (a > 3).long() if in_pyro else (a > 3).astype(int)
        sample("y", d.Normal(z[index], 0.1), obs=y)

    log_z = stats.norm.logpdf(4.5, 0, np.sqrt(1.01)) + np.log(np.diff(stats.norm.cdf([0, 1], 0.5, 0.1))[0])
    posterior = exact.fit(model, array(0.5), budget=8_000, weights="elbo", discovery=FEW)
    assert posterior.elbo == pytest.approx(log_z, abs=0.05)


def test_an_element_whose_reach_only_the_guide_shows_is_noted():
    """Inside a loop, operations do not tell element by element."""

    def model(y):
        a = numpyro.sample("a", dist.Normal(0, 1))
        with numpyro.handlers.mask(mask=jnp.array([True, False])):
            z = numpyro.sample("z", dist.Normal(0, 1).expand([2]))
        total, _ = jax.lax.scan(lambda c, x: (c + jnp.where(a > 6, x, 0.0), None), 0.0, z)
        numpyro.sample("y", dist.Normal(a + total, 0.1), obs=y)

    posterior = exact.fit(model, 8.0, budget=4_000, discovery=FEW)
    assert not posterior.verdict.ok
    assert "'z' change the density where the guide is" in str(posterior.verdict)


@both
def test_draws_take_masked_elements_from_their_prior(in_pyro):
    """The prior of a masked element depends on other sites: it is drawn given them."""
    sample, d, _ = tools(in_pyro)
    data, seen = arrays(in_pyro)
    plate = pyro.plate if in_pyro else numpyro.plate

    def model():
        mean = sample("mean", d.Normal(5.0, 1.0))
        with plate("rows", 4):
            sample("y", d.Normal(mean, 0.1), obs=data, obs_mask=seen)

    posterior = exact.fit(model, budget=4_000, discovery=FEW)
    draws = posterior.sample(0, 4_000)
    away = (draws["y_unobserved"] - draws["mean"][:, None])[:, SEEN]
    # Standard errors are 0.0016 of means and 0.0011 of standard deviations; six comparisons.
    np.testing.assert_allclose(away.mean(axis=0), 0, atol=0.008)
    np.testing.assert_allclose(away.std(axis=0), 0.1, atol=0.006)
    imputed = draws["y"]
    np.testing.assert_allclose(imputed[:, SEEN], np.broadcast_to(DATA[SEEN], (4_000, 3)))
    np.testing.assert_allclose(imputed[:, 1], draws["y_unobserved"][:, 1])


@both
def test_a_whole_site_under_a_mask(in_pyro):
    """Nothing depends on it: the path is exact, and the site comes from its prior."""
    sample, d, as_array = tools(in_pyro)

    def model(y):
        with hide(in_pyro, False):
            sample("extra", d.Gamma(3.0, 1.0))
        sample("y", d.Normal(0.0, 1.0), obs=y)

    posterior = exact.fit(model, as_array(1.0), budget=100, discovery=FEW)
    (path,) = posterior.paths
    assert path.status is Status.EXACT and path.elbo == pytest.approx(stats.norm.logpdf(1.0))
    drawn = posterior.sample(0, 2_000)["extra"]
    assert stats.kstest(drawn, stats.gamma(3).cdf).pvalue > 1e-4


@both
def test_a_masked_site_that_the_likelihood_uses_is_fitted(in_pyro):
    """It has a flat prior: the evidence is the integral of the likelihood."""
    sample, d, as_array = tools(in_pyro)

    def model(y):
        with hide(in_pyro, False):
            x = sample("x", d.Normal(0.0, 1.0))
        sample("y", d.Normal(x, 0.5), obs=y)

    posterior = exact.fit(model, as_array(1.0), budget=4_000, discovery=FEW)
    assert posterior.elbo == pytest.approx(0.0, abs=2e-3)
    assert posterior.sample(0, 2_000)["x"].mean() == pytest.approx(1.0, abs=0.05)


@both
def test_a_masked_site_that_only_moves_a_step_is_fitted(in_pyro):
    """It has no derivative anywhere, but the density depends on it."""
    sample, d, as_array = tools(in_pyro)
    where = torch.where if in_pyro else jnp.where

    def model(y):
        with hide(in_pyro, False):
            x = sample("x", d.Uniform(0.0, 1.0))
        sample("y", d.Normal(where(x > 0.5, 1.0, -1.0), 1.0), obs=y)

    posterior = exact.fit(model, as_array(1.0), budget=4_000, discovery=FEW)
    (path,) = posterior.paths
    log_z = np.log(np.mean(stats.norm.pdf(1.0, [1.0, -1.0])))
    assert path.gradient == "score" and log_z - 0.4 < path.elbo <= log_z + 0.05


@both
@pytest.mark.parametrize("support", ["simplex", "positive", "box"])
def test_masks_over_other_supports(in_pyro, support):
    """Two of three elements count; the third would gain entropy without bound."""
    sample, d, as_array = tools(in_pyro)
    mask = torch.tensor([True, False, True]) if in_pyro else jnp.array([True, False, True])
    plate = pyro.plate if in_pyro else numpyro.plate

    def model(y):
        if support == "box":
            level = sample("level", d.Normal(0.0, 1.0))
            if level > 0:
                level = level + 1
        with plate("rows", 3), hide(in_pyro, mask):
            if support == "simplex":
                x = sample("x", d.Dirichlet(as_array([2.0, 2.0, 2.0])))
            else:
                x = sample("x", d.Gamma(2.0, 1.0))
        sample("y", d.Normal(x[0].sum(), 1.0), obs=y)

    posterior = exact.fit(model, as_array(1.0), budget=4_000, discovery=FEW)
    if support == "simplex":
        log_z = stats.norm.logpdf(0.0)
    else:
        grid = np.linspace(1e-6, 30, 300_001)
        log_z = np.log(np.sum(stats.gamma(2).pdf(grid) * stats.norm.pdf(1, grid)) * (grid[1] - grid[0]))
    assert log_z - 0.15 < posterior.elbo <= log_z + 0.01


@both
def test_masked_whole_numbers_keep_their_probabilities(in_pyro):
    """Each value is a path of its own; without probabilities every further coin would double the evidence."""
    sample, d, _ = tools(in_pyro)
    data, seen = arrays(in_pyro)
    plate = pyro.plate if in_pyro else numpyro.plate
    coins = (data > 0.5).double() if in_pyro else (data > 0.5).astype(float)

    def model():
        if sample("imputed", d.Bernoulli(0.5)):
            with plate("rows", 4):
                sample("y", d.Bernoulli(0.5), obs=coins, obs_mask=seen)
        else:
            sample("y_seen", d.Bernoulli(0.5), obs=coins[seen])

    posterior = exact.fit(model, discovery=PriorDiscovery(600))
    weight = sum(path.weight for path in posterior.paths if path.pinned["imputed"] == 1)
    assert weight == pytest.approx(0.5, abs=1e-6)
    assert posterior.elbo == pytest.approx(3 * np.log(0.5), abs=1e-6)


@both
def test_a_mask_that_depends_on_a_whole_number(in_pyro):
    sample, d, as_array = tools(in_pyro)
    positions = torch.arange(3) if in_pyro else jnp.arange(3)
    plate = pyro.plate if in_pyro else numpyro.plate
    zeros = as_array([0.0, 0.0, 0.0])

    def model(y):
        k = sample("k", d.Categorical(as_array([0.25, 0.25, 0.5])))
        with plate("rows", 3), hide(in_pyro, positions <= k):
            x = sample("x", d.Normal(0.0, 1.0))
        total = (torch.where if in_pyro else jnp.where)(positions <= k, x, zeros).sum()
        sample("y", d.Normal(total, 1.0), obs=y)

    posterior = exact.fit(model, as_array(2.0), budget=12_000, guide="fullrank", discovery=FEW)
    log_z = np.log([0.25, 0.25, 0.5]) + stats.norm.logpdf(2.0, 0, np.sqrt([2, 3, 4]))
    found = {path.pinned["k"]: path.elbo for path in posterior.paths}
    assert [found[k] for k in range(3)] == pytest.approx(log_z, abs=2e-3)
