"""Observed values and supports: impossible data, supports that depend on latent sites, NaN, broadcasting."""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pyro
import pyro.distributions as pyro_dist
import pytest
import torch
from scipy import integrate, stats

import pathmix
from pathmix import Status
from pathmix.discovery import PriorDiscovery
from pathmix.errors import ImpossibleObservationError
from tests import exact

FEW = PriorDiscovery(100)
IN_PYRO = {"numpyro": False, "pyro": True}
both = pytest.mark.parametrize("in_pyro", IN_PYRO.values(), ids=IN_PYRO.keys())


def tools(in_pyro):
    """sample, the distributions and arrays of a library."""
    if in_pyro:
        return pyro.sample, pyro_dist, lambda x: torch.tensor(x, dtype=torch.float64)
    return numpyro.sample, dist, jnp.asarray


def two_ways(in_pyro):
    sample, d, _ = tools(in_pyro)

    def model(y):
        if sample("k", d.Bernoulli(0.5)):
            sample("normal", d.Normal(sample("mean", d.Normal(0.0, 1.0)), 1.0), obs=y)
        else:
            sample("waiting", d.Exponential(sample("rate", d.Exponential(1.0))), obs=y)

    return model


@both
def test_data_that_a_path_cannot_give_leave_it_no_weight(in_pyro):
    as_array = tools(in_pyro)[2]
    posterior = exact.fit(two_ways(in_pyro), as_array(-1.0), budget=2_000, weights="elbo", discovery=FEW)
    possible, impossible = posterior.paths
    assert possible.label == "k=1" and possible.weight == 1.0
    assert possible.elbo == pytest.approx(np.log(0.5) + stats.norm.logpdf(-1, 0, np.sqrt(2)), abs=1e-3)
    assert impossible.status is Status.IMPOSSIBLE and impossible.weight == 0 and impossible.steps == 0
    assert "'waiting' at test_observations.py:" in impossible.message and "-1" in impossible.message


BEYOND = {
    "below": (lambda d: d.Gamma(2.0, 1.0), [1.0, -0.5]),
    "above": (lambda d: d.Beta(2.0, 1.0), [0.5, 1.5]),
    "fraction": (lambda d: d.Poisson(2.0), [1.0, 2.5]),
    "negative count": (lambda d: d.Poisson(2.0), [1.0, -2.0]),
    "no truth value": (lambda d: d.Bernoulli(0.5), [1.0, 2.0]),
    "too many": (lambda d: d.Binomial(3, 0.5), [1.0, 4.0]),
    "no such class": (lambda d: d.Categorical(logits=np.zeros(3) if d is dist else torch.zeros(3)), [1, 3]),
    "interval": (lambda d: d.Uniform(0.0, 2.0), [1.0, 2.5]),
}
SIMPLEX = [[0.2, 0.3, 0.5], [0.2, 0.3, 0.6]]


@both
@pytest.mark.parametrize("name", BEYOND)
def test_every_support_is_checked(name, in_pyro):
    sample, d, as_array = tools(in_pyro)
    make, values = BEYOND[name]

    def model(y):
        sample("z", d.Normal(0.0, 1.0))
        sample("y", make(d), obs=y)

    with pytest.raises(ImpossibleObservationError, match=r"'y' at test_observations.*1 of 2 values.*index 1"):
        exact.fit(model, as_array(values), discovery=FEW)


@both
def test_events_are_checked_whole(in_pyro):
    sample, d, as_array = tools(in_pyro)

    def model(y):
        sample("z", d.Normal(0.0, 1.0))
        sample("y", d.Dirichlet(as_array([1.0, 1.0, 1.0])), obs=y)

    with pytest.raises(ImpossibleObservationError, match="1 of 2 values"):
        exact.fit(model, as_array(SIMPLEX), discovery=FEW)
    # Shares that were computed in single precision sum to one well enough.
    rounded = as_array(np.float32(SIMPLEX)[:1].astype(float))
    assert exact.fit(model, rounded, budget=100, weights="elbo", discovery=FEW).paths[0].status is Status.OK


@both
def test_the_ends_of_a_support_are_no_mistake(in_pyro):
    """Data at the end of a half-line, as rounding makes them, have the density that the formula gives."""
    sample, d, as_array = tools(in_pyro)

    def model(y):
        rate = sample("rate", d.Exponential(1.0))
        sample("y", d.Exponential(rate), obs=y)

    posterior = exact.fit(model, as_array([0.0, 1.0]), budget=3_000, weights="elbo", discovery=FEW)
    # The integral of r^2 exp(-2 r) is 1/4; the best normal guide of log r misses it by 0.03.
    assert np.log(0.25) - 0.06 < posterior.elbo < np.log(0.25) + 0.01


@both
def test_masked_values_may_be_anything(in_pyro):
    sample, d, as_array = tools(in_pyro)
    mask = as_array([True, False]) if not in_pyro else torch.tensor([True, False])
    hide = (pyro.poutine if in_pyro else numpyro.handlers).mask

    def model(y):
        rate = sample("rate", d.Exponential(1.0))
        with hide(mask=mask):
            sample("y", d.Exponential(rate), obs=y)

    for other in (-3.0, np.nan):
        data = as_array([1.0, other])
        posterior = exact.fit(model, data, budget=3_000, weights="elbo", discovery=FEW)
        # The integral of r exp(-2 r) is 1/4; the best normal guide of log r misses it by 0.04.
        assert np.log(0.25) - 0.07 < posterior.elbo < np.log(0.25) + 0.01


def uniform_below(in_pyro):
    sample, d, _ = tools(in_pyro)

    def model(y):
        top = sample("top", d.LogNormal(1.0, 1.0))
        sample("y", d.Uniform(0.0, top), obs=y)

    return model


@both
@pytest.mark.parametrize("data", [5.0, [1.0, 5.0, 3.0]])
def test_a_support_that_depends_on_a_latent_site_bounds_it(in_pyro, data):
    """The guide lives exactly where the data are covered: a box, and nothing is rejected."""
    count = np.size(data)
    log_z = np.log(
        integrate.quad(lambda t: stats.lognorm(1, scale=np.e).pdf(t) * t**-count, 5, np.inf, epsabs=0)[0]
    )
    posterior = exact.fit(uniform_below(in_pyro), tools(in_pyro)[2](data), budget=4_000, discovery=FEW)
    (path,) = posterior.paths
    assert path.region.kind == "box" and path.gradient == "reparam" and path.acceptance == 1.0
    assert path.label == "always"
    assert log_z - 0.1 < path.elbo < log_z + 0.02
    assert posterior.sample(0, 1_000)["top"].min() >= 5
    known = {"top": 4.0}
    assert posterior.log_prob(known) == -np.inf


@both
def test_supports_that_no_box_describes_truncate_the_guide(in_pyro):
    sample, d, as_array = tools(in_pyro)

    def model(y):
        low = sample("low", d.Normal(0.0, 1.0))
        width = sample("width", d.LogNormal(1.0, 1.0))
        sample("y", d.Uniform(low, low + width), obs=y)

    lows, widths = np.linspace(-8, 1, 1_501), np.linspace(1e-3, 150, 30_001)
    # For each lower end below the data, the density of widths beyond the reach of the data.
    inner = stats.lognorm(1, scale=np.e).pdf(widths) * widths**-3.0
    beyond = np.cumsum(inner[::-1])[::-1] * (widths[1] - widths[0])
    log_z = np.log(np.sum(stats.norm.pdf(lows) * np.interp(5 - lows, widths, beyond)) * (lows[1] - lows[0]))
    posterior = exact.fit(model, as_array([1.0, 5.0, 3.0]), budget=8_000, discovery=FEW)
    (path,) = posterior.paths
    assert path.region.kind == "general" and path.gradient == "truncated"
    assert log_z - 0.3 < path.elbo < log_z + 0.05
    drawn = posterior.sample(0, 500)
    assert np.all(drawn["low"] <= 1) and np.all(drawn["low"] + drawn["width"] >= 5)


@both
def test_new_data_outside_the_support_have_no_likelihood(in_pyro):
    model, y = uniform_below(in_pyro), tools(in_pyro)[2](5.0)
    posterior = exact.fit(model, y, budget=500, weights="elbo", discovery=FEW)
    tops = posterior.sample(3, 200)["top"]
    found = posterior.log_likelihood(3, 200, tools(in_pyro)[2](8.0))
    np.testing.assert_allclose(found, np.where(tops >= 8, -np.log(tops), -np.inf))


@both
def test_missing_numbers_are_named(in_pyro):
    sample, d, as_array = tools(in_pyro)

    def model(y):
        sample("y", d.Normal(sample("mean", d.Normal(0.0, 1.0)), 1.0), obs=y)

    with pytest.raises(ImpossibleObservationError, match=r"'y' at test_obs.*NaN: 1 of 3 .*index 1.*obs_mask"):
        exact.fit(model, as_array([0.5, np.nan, 1.0]), discovery=FEW)


@both
def test_missing_numbers_in_other_arguments_are_noted(in_pyro):
    sample, d, as_array = tools(in_pyro)

    def model(x, y):
        sample("y", d.Normal(sample("slope", d.Normal(0.0, 1.0)) * x, 1.0), obs=y)

    with pytest.warns(pathmix.PathmixWarning, match="No path carries weight"):
        posterior = exact.fit(model, as_array([1.0, np.nan]), as_array([0.5, 1.0]), budget=50, discovery=FEW)
    assert posterior.paths[0].status is Status.NAN
    assert any("argument number 1 (1)" in note for note in posterior.notes)


@both
def test_missing_numbers_on_one_path_only(in_pyro):
    sample, d, as_array = tools(in_pyro)

    def model(y, z):
        mean = sample("mean", d.Normal(0.0, 1.0))
        if sample("k", d.Bernoulli(0.5)):
            sample("z", d.Normal(mean, 1.0), obs=z)
        sample("y", d.Normal(mean, 1.0), obs=y)

    data = as_array(0.3), as_array(np.nan)
    posterior = exact.fit(model, *data, budget=500, weights="elbo", discovery=FEW)
    assert [path.status for path in posterior.paths] == [Status.OK, Status.NAN]
    assert "'z' at test_observations.py" in posterior.paths[1].message


@both
def test_data_that_count_several_times_are_noted(in_pyro):
    sample, d, as_array = tools(in_pyro)
    ones = as_array(np.ones((3, 1)))

    def model(y, shape):
        mean = sample("mean", d.Normal(0.0, 1.0))
        sample("y", d.Normal(mean * ones.reshape(shape), 1.0), obs=y)

    data = as_array([1.0, 2.0, 3.0])
    posterior = exact.fit(model, data, (3, 1), budget=100, discovery=FEW)
    assert any(
        "(3,)" in note and "(3, 1)" in note and "test_observations" in note for note in posterior.notes
    )
    assert not exact.fit(model, data, (3,), budget=100, discovery=FEW).notes[:-1]


@both
def test_nothing_observed_is_noted(in_pyro):
    sample, d, as_array = tools(in_pyro)
    factor = pyro.factor if in_pyro else numpyro.factor

    def model(y=None, term=None):
        mean = sample("mean", d.Normal(0.0, 1.0))
        sample("y", d.Normal(mean, 1.0), obs=y)
        if term is not None:
            factor("term", term)

    def noted(*args):
        posterior = exact.fit(model, *args, budget=100, weights="elbo", discovery=FEW)
        return any("Nothing is observed" in note for note in posterior.notes)

    assert noted() and not noted(as_array(1.0)) and not noted(None, as_array(-0.5))


SHIFTED = {"exponential": stats.expon, "half-normal": stats.halfnorm, "uniform": stats.uniform}


def shifted(in_pyro, name, shift):
    d = tools(in_pyro)[1]
    bases = {
        "exponential": lambda: d.Exponential(1.0),
        "half-normal": lambda: d.HalfNormal(1.0),
        "uniform": lambda: d.Uniform(0.0, 1.0),
    }
    return d.TransformedDistribution(bases[name](), [d.transforms.AffineTransform(shift, 1.0)])


@both
@pytest.mark.parametrize("name", SHIFTED)
def test_what_is_shifted_keeps_to_its_support(in_pyro, name):
    """The library says that a shifted site may be any number."""
    sample, d, as_array = tools(in_pyro)

    def model(y):
        x = sample("x", shifted(in_pyro, name, 2.0))
        sample("y", d.Normal(x, 1.0), obs=y)

    log_z = np.log(
        integrate.quad(lambda x: SHIFTED[name].pdf(x - 2) * stats.norm.pdf(0.5, x), 2, 9, limit=200)[0]
    )
    posterior = exact.fit(model, as_array(0.5), budget=4_000, discovery=FEW)
    assert log_z - 0.08 < posterior.elbo < log_z + 0.02
    assert posterior.sample(0, 500)["x"].min() >= 2
    assert posterior.log_prob({"x": 1.9}) == -np.inf


@both
def test_data_that_are_shifted_bound_the_shift(in_pyro):
    sample, d, as_array = tools(in_pyro)
    data = np.array([1.3, 1.9, 2.6])

    def model(y):
        sample("y", shifted(in_pyro, "exponential", sample("t", d.Normal(0.0, 1.0))), obs=y)

    def density(t):
        return stats.norm.pdf(t) * np.exp(-np.sum(data - t))

    log_z = np.log(integrate.quad(density, -9, 1.3)[0])
    posterior = exact.fit(model, as_array(data), budget=4_000, discovery=FEW)
    assert log_z - 0.2 < posterior.elbo < log_z + 0.02
    assert posterior.sample(0, 500)["t"].max() <= 1.3


@both
def test_masked_elements_of_what_is_shifted_are_not_fitted(in_pyro):
    sample, d, as_array = tools(in_pyro)
    mask = (pyro.poutine if in_pyro else numpyro.handlers).mask

    def model(y):
        base = d.Exponential(1.0).expand([3, 2]).to_event(1)
        with mask(mask=as_array([1.0, 0.0, 1.0]) > 0):
            x = sample("x", d.TransformedDistribution(base, [d.transforms.AffineTransform(2.0, 1.0)]))
        sample("y", d.Normal(x[0, 0], 1.0), obs=y)

    log_z = np.log(integrate.quad(lambda x: np.exp(2 - x) * stats.norm.pdf(0.5, x), 2, 12)[0])
    posterior = exact.fit(model, as_array(0.5), budget=4_000, discovery=FEW)
    # Four exponential sites with guides that are normal in their logarithm: 0.1 nats each, and training.
    assert log_z - 0.6 < posterior.elbo < log_z + 0.02
    assert posterior.sample(0, 200)["x"].min() >= 2
