"""Sums without an end are cut where nothing is left, whatever meets the site, and refused with the reason."""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pyro
import pytest
import torch
from scipy import stats
from scipy.special import logsumexp

from pathmix.errors import UnsupportedSiteError
from pathmix.methods.dcc import DCC, RandomWalk
from pathmix.summation.tails import Cut
from tests import exact

N = np.arange(2_000)


def checked(model, wanted, *args):
    """The posterior of a program without continuous sites, whose evidence is known."""
    posterior = exact.fit(model, *args)
    assert posterior.verdict.ok
    assert posterior.log_evidence == pytest.approx(wanted, abs=1e-7)
    return posterior


@pytest.mark.parametrize("library", ["numpyro", "pyro"])
def test_the_last_of_many_values_of_another_site(library):
    d, sample, plate, tensor = (
        (dist, numpyro.sample, numpyro.plate, jnp.asarray)
        if library == "numpyro"
        else (pyro.distributions, pyro.sample, pyro.plate, torch.tensor)
    )
    shares, rates = np.r_[np.full(19, 0.999 / 19), 0.001], np.r_[np.linspace(2, 4, 19), 150.0]

    def strains(reported):
        with plate("towns", len(reported)):
            strain = sample("strain", d.Categorical(tensor(shares)))
            cases = sample("cases", d.Poisson(tensor(rates)[strain]))
            sample("reported", d.Binomial(cases, tensor(0.1)), obs=reported)

    y = np.array([0, 1, 14])
    wanted = np.log((shares * stats.poisson.pmf(y[:, None], rates / 10)).sum(axis=1)).sum()
    checked(strains, wanted, y if library == "numpyro" else torch.tensor(y, dtype=torch.float64))


def mixed():
    parts = dist.Poisson(jnp.array([3.0, 400.0]))
    return dist.MixtureSameFamily(dist.Categorical(probs=jnp.array([0.4, 0.6])), parts)


PRIORS = {
    "two humps": (mixed, 0.4 * stats.poisson.pmf(N, 3) + 0.6 * stats.poisson.pmf(N, 400)),
    "zeros": (lambda: dist.ZeroInflatedPoisson(0.3, 200.0), 0.7 * stats.poisson.pmf(N, 200) + 0.3 * (N == 0)),
}


@pytest.mark.parametrize("name", PRIORS)
def test_a_gap_hides_nothing_and_two_humps_are_no_cut(name):
    made, prior = PRIORS[name]

    def model(y):
        with numpyro.plate("rows", len(y)):
            n = numpyro.sample("n", made())
            numpyro.sample("y", dist.Binomial(n, 0.005), obs=y)

    y = np.array([0, 0, 1])
    checked(model, np.log((prior * stats.binom.pmf(y[:, None], N, 0.005)).sum(axis=1)).sum(), y)


def negative_binomial():
    return dist.NegativeBinomialProbs(3.0, 0.6)


def with_a_far_hump():
    parts = [negative_binomial(), dist.Poisson(900_000.0)]
    return dist.MixtureGeneral(dist.Categorical(probs=jnp.array([1 - 1e-6, 1e-6])), parts)


def clipped(made):
    def model():
        n = numpyro.sample("n", made())
        numpyro.sample("y", dist.Normal(jnp.minimum(n, 5), 1.0), obs=1.0)

    return model


def test_log_b_of_jax_may_be_off_and_a_far_hump_is_seen_all_the_same():
    """Priors that it is in do not add up to one, as if there were more further out."""
    wanted = np.log((stats.nbinom.pmf(N, 3, 0.4) * stats.norm.pdf(1.0, np.minimum(N, 5))).sum())
    assert exact.fit(clipped(negative_binomial)).log_evidence == pytest.approx(wanted, abs=1e-6)
    with pytest.raises(UnsupportedSiteError, match="mass beyond 4,095"):
        exact.fit(clipped(with_a_far_hump))


def test_data_far_beyond_the_prior():
    def model(y):
        with numpyro.plate("rows", len(y)):
            n = numpyro.sample("n", dist.Poisson(1.0))
            numpyro.sample("y", dist.Normal(n, 0.5), obs=y)

    y = np.array([1.0, 30.0, 300.0])
    logs = stats.poisson.logpmf(N, 1) + stats.norm.logpdf(y[:, None], N, 0.5)
    checked(model, logsumexp(logs, axis=1).sum(), y)


def test_counts_that_meet_each_other():
    """Prior draws of either say little of where the data pull both."""

    def model(y):
        with numpyro.plate("rows", len(y)):
            parents = numpyro.sample("parents", dist.Poisson(2.0))
            children = numpyro.sample("children", dist.Poisson(0.5 + parents))
            numpyro.sample("y", dist.Normal(children, 1.0), obs=y)

    y, n = np.array([3.0, 70.0]), N[:400]
    joint = stats.poisson.logpmf(n, 2)[:, None] + stats.poisson.logpmf(n, 0.5 + n[:, None])
    wanted = sum(logsumexp(joint + stats.norm.logpdf(seen, n, 1)) for seen in y)
    checked(model, wanted, y)


def test_a_lone_site_is_one_table():
    """Neither are its values paths, nor is anything gained; but it has no end."""
    y = np.array([4, 5, 3, 6, 4, 1, 0, 2, 1, 1])

    def model():
        change = numpyro.sample("change", dist.Geometric(probs=0.1))
        rate = jnp.where(jnp.arange(len(y)) < change, 4.5, 1.0)
        with numpyro.plate("years", len(y)):
            numpyro.sample("y", dist.Poisson(rate), obs=y)

    rates = np.where(np.arange(len(y)) < N[:, None], 4.5, 1.0)
    logs = stats.geom.logpmf(N + 1, 0.1) + stats.poisson.logpmf(y, rates).sum(axis=1)
    posterior = checked(model, logsumexp(logs))
    shares = exact.softmax(logs)
    drawn = np.bincount(posterior.sample(0, 2_000)["change"].astype(int), minlength=len(N)) / 2_000
    assert np.all(np.abs(drawn - shares) < 5 * np.sqrt(shares * (1 - shares) / 2_000) + 1e-3)


def test_chains_are_told_of_a_posterior_beyond_the_cut(monkeypatch):
    def model(y):
        scale = numpyro.sample("scale", dist.LogNormal(0.0, 0.1))
        with numpyro.plate("rows", len(y)):
            count = numpyro.sample("count", dist.Poisson(2.0))
            numpyro.sample("y", dist.Normal(1.0 * count, scale), obs=y)

    monkeypatch.setattr("pathmix.summation.summing.values_of", lambda *_: Cut(20, True))
    posterior = DCC(model, kernel=RandomWalk(), iterations=5).run(0, np.array([60.0, 1.0]))
    assert not posterior.verdict.ok
    assert "'count' were summed up to 19" in str(posterior.verdict)


def one_hot():
    z = pyro.sample("z", pyro.distributions.OneHotCategorical(torch.tensor([0.2, 0.3, 0.5])))
    mean = (z * torch.arange(3.0)).sum()
    pyro.sample("y", pyro.distributions.Normal(mean, 1.0), obs=torch.tensor(1.0))


def shared_out():
    z = numpyro.sample("z", dist.Multinomial(3, jnp.array([0.2, 0.3, 0.5])))
    numpyro.sample("y", dist.Normal(jnp.sum(z * jnp.arange(3.0)), 1.0), obs=1.0)


def heavy():
    with numpyro.plate("rows", 2):
        z = numpyro.sample("z", dist.Poisson(20_000.0))
        numpyro.sample("y", dist.Normal(z, 100.0), obs=19_950.0)


def bounded_by_another():
    a = numpyro.sample("a", dist.Poisson(3.0))
    z = numpyro.sample("z", dist.Binomial(a, 0.5))
    numpyro.sample("y", dist.Normal(z, 1.0), obs=1.0)


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (one_hot, "'z' at .* are vectors whose elements depend on each other"),
        (shared_out, "'z' at .* are vectors whose elements depend on each other"),
        (heavy, "'z' has no upper end, and prior draws of it go up to"),
        (bounded_by_another, "the support of 'z' depends on another site"),
    ],
)
def test_what_cannot_be_summed_out_says_why(model, reason):
    with pytest.raises(UnsupportedSiteError, match=reason):
        exact.fit(model)
