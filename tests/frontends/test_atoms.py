"""Priors that give single values a probability, and others a density."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pyro
import pyro.distributions as pdist
import pytest
import torch
from scipy import stats

import pathmix
from pathmix.errors import UnsupportedSiteError
from pathmix.methods.dcc import DCC
from tests.paths import discover

with_hurdles = pytest.mark.skipif(not hasattr(dist, "HurdleProbs"), reason="this NumPyro has none")
NUMPYRO = {
    "spike and slab": lambda: dist.MixtureGeneral(
        dist.Categorical(jnp.array([0.3, 0.7])),
        [dist.Delta(0.0), dist.Normal(2.0, 1.0)],
        support=dist.constraints.real,
    ),
    "hurdle": lambda: dist.HurdleLogNormal(0.3, 0.0, 1.0),
    "hurdles, many": lambda: dist.HurdleGamma(0.3, 2.0, 1.0).expand([2]).mask(True).to_event(1),
    "transformed": lambda: dist.TransformedDistribution(
        dist.HurdleLogNormal(0.3, 0.0, 1.0), dist.transforms.AffineTransform(1.0, 2.0)
    ),
    "censored": lambda: dist.RightCensoredDistribution(dist.LogNormal(0.0, 1.0), 1),
}
HURDLES = {"hurdle", "hurdles, many", "transformed"}
PYRO = {
    "inflated": lambda: pdist.ZeroInflatedDistribution(pdist.LogNormal(0.0, 1.0), gate=torch.tensor(0.3)),
    "two atoms": lambda: pdist.MixtureSameFamily(
        pdist.Categorical(torch.tensor([0.3, 0.7])), pdist.Delta(torch.tensor([0.0, 1.0]))
    ),
    "masked": lambda: pdist.MaskedMixture(
        torch.tensor([True, False]), pdist.Delta(torch.zeros(2)), pdist.Normal(torch.zeros(2), 1.0)
    ).to_event(1),
}
FINE = {
    "counts": lambda: dist.ZeroInflatedPoisson(0.3, 2.0),
    "mixture": lambda: dist.MixtureSameFamily(
        dist.Categorical(jnp.array([0.3, 0.7])), dist.Normal(jnp.array([0.0, 1.0]), 1.0)
    ),
    "triangular": lambda: dist.LKJCholesky(3),
}


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(make, id=name, marks=with_hurdles if name in HURDLES else ())
        for name, make in NUMPYRO.items()
    ],
)
def test_they_are_refused(make):
    def model():
        x = numpyro.sample("x", make())
        numpyro.sample("y", dist.Normal(jnp.sum(x), 1.0), obs=0.4)

    with pytest.raises(UnsupportedSiteError, match=r"'x' at test_atoms.py:\d+ .*(Draw which|for data)"):
        discover(model, samples=20)


@pytest.mark.parametrize("make", PYRO.values(), ids=PYRO)
def test_they_are_refused_in_pyro(make):
    def model():
        x = pyro.sample("x", make())
        pyro.sample("y", pdist.Normal(x.sum(), 1.0), obs=torch.tensor(0.4))

    with pytest.raises(UnsupportedSiteError, match=r"'x' at test_atoms.py:\d+ .*Draw which"):
        discover(model, samples=20)


@pytest.mark.parametrize("make", FINE.values(), ids=FINE)
def test_others_are_not(make):
    def model():
        x = numpyro.sample("x", make())
        numpyro.sample("y", dist.Normal(jnp.sum(x), 1.0), obs=0.4)

    few = pathmix.Uniform(budget=200)
    verdict = pathmix.SDVI(model, allocation=few, discovery=pathmix.PriorDiscovery(100), progress=False).run(
        0
    )
    assert "repeat" not in str(verdict.verdict)


@with_hurdles
def test_data_may_have_them():
    def model():
        x = numpyro.sample("x", dist.Normal(0.0, 1.0))
        numpyro.sample("y", dist.HurdleLogNormal(0.3, x, 1.0), obs=jnp.array([0.0, 1.5]))

    posterior = pathmix.SDVI(model, progress=False).run(0)
    exact = np.log(0.3 * 0.7 / 1.5) + stats.norm.logpdf(np.log(1.5), 0, np.sqrt(2))
    assert posterior.log_evidence == pytest.approx(exact, abs=0.01)


def test_what_the_error_advises_is_right():
    def model():
        x = numpyro.sample("x", dist.Normal(2.0, 1.0)) if numpyro.sample("any", dist.Bernoulli(0.7)) else 0.0
        numpyro.sample("y", dist.Normal(x, 1.0), obs=0.4)

    posterior = pathmix.SDVI(model, progress=False).run(0)
    exact = np.log(0.3 * stats.norm.pdf(0.4) + 0.7 * stats.norm.pdf(0.4, 2.0, np.sqrt(2)))
    assert posterior.log_evidence == pytest.approx(exact, abs=0.01)


class Cut(dist.Distribution):
    """A type of the user's own, whose draws are cut at a value inside its support."""

    support = dist.constraints.real

    def sample(self, key, sample_shape=()):
        return jnp.maximum(jax.random.normal(key, sample_shape), 0.0)

    def log_prob(self, value):
        return dist.Normal(0.0, 1.0).log_prob(value)


@pytest.mark.parametrize("method", [pathmix.SDVI, DCC])
def test_draws_that_repeat_are_a_doubt(method):
    def model():
        numpyro.sample("y", dist.Normal(numpyro.sample("x", Cut()), 1.0), obs=0.4)

    options = {"allocation": pathmix.Uniform(budget=200)} if method is pathmix.SDVI else {"iterations": 20}
    posterior = method(model, discovery=pathmix.PriorDiscovery(50), progress=False, **options).run(0)
    assert not posterior.verdict.ok
    assert "Prior draws of 'x' repeat the value 0." in str(posterior.verdict)


def test_draws_that_are_rounded_to_an_end_are_none():
    def model():
        x = numpyro.sample("x", dist.Gamma(0.001, 0.001)) + numpyro.sample("z", dist.Beta(0.01, 0.01))
        numpyro.sample("y", dist.Normal(x, 1.0), obs=0.4)

    few = pathmix.Uniform(budget=200)
    posterior = pathmix.SDVI(
        model, allocation=few, discovery=pathmix.PriorDiscovery(100), progress=False
    ).run(0)
    assert "repeat" not in str(posterior.verdict)
