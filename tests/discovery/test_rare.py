"""Values less probable than rounding are not taken for impossible, nor impossible ones for improbable."""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pyro
import pyro.distributions as pdist
import pytest
import torch
from scipy import stats
from scipy.special import logsumexp

from pathmix import Enumeration, PriorDiscovery
from tests import exact

normal = stats.norm.logpdf


def branch(y):
    if numpyro.sample("b", dist.Bernoulli(logits=-42.0)):
        mean = numpyro.sample("far", dist.Normal(12, 1))
    else:
        mean = numpyro.sample("near", dist.Normal(0, 1))
    numpyro.sample("y", dist.Normal(mean, 0.5), obs=y)


def branch_pyro(y):
    if pyro.sample("b", pdist.Bernoulli(logits=torch.tensor(-42.0))):
        mean = pyro.sample("far", pdist.Normal(12.0, 1.0))
    else:
        mean = pyro.sample("near", pdist.Normal(0.0, 1.0))
    pyro.sample("y", pdist.Normal(mean, 0.5), obs=torch.tensor(y))


def behind_a_die(y):
    """Sixty sides, of which one has a coin behind it that hardly ever comes up."""
    side = int(numpyro.sample("side", dist.DiscreteUniform(0, 59)))
    coin = numpyro.sample("coin", dist.Bernoulli(1e-12)) if side == 17 else 0
    numpyro.sample("y", dist.Normal(12.0 * int(coin), 1.0), obs=y)


@pytest.mark.parametrize("model", [branch, branch_pyro])
@pytest.mark.parametrize("discovery", [None, Enumeration(cover=1.0)])
def test_a_branch_of_next_to_no_probability(model, discovery):
    options = {} if discovery is None else {"discovery": discovery}
    posterior = exact.fit(model, 12.0, budget=2_000, **options)
    expected = -42 + normal(12, 12, np.sqrt(1.25))
    assert posterior.log_evidence == pytest.approx(expected, abs=0.01)
    assert posterior.verdict.ok and posterior.discovery.unseen_bound == 0


def test_what_prior_runs_leave_out_is_said():
    posterior = exact.fit(branch, 12.0, budget=10, discovery=PriorDiscovery(100))
    report = posterior.discovery
    assert report.unseen_is_exact and report.unseen_mass == pytest.approx(np.exp(-42), rel=1e-6)
    assert not posterior.verdict.ok
    assert [place.ways for place in posterior.tree.unexplored()] == [("b=1",)]


def test_one_of_many_places():
    posterior = exact.fit(behind_a_die, 12.0, budget=2_000)
    terms = [np.log(1e-12 / 60) + normal(12, 12, 1), np.log(1 - 1e-12 / 60) + normal(12, 0, 1)]
    assert posterior.log_evidence == pytest.approx(logsumexp(terms), abs=1e-6)


def count(y):
    n = int(numpyro.sample("n", dist.Poisson(1.0)))
    e = numpyro.sample("e", dist.Normal(0, 0.5))
    numpyro.sample("y", dist.Normal(n + e, 0.5), obs=y)


def count_pyro(y):
    n = int(pyro.sample("n", pdist.Poisson(1.0)))
    e = pyro.sample("e", pdist.Normal(0.0, 0.5))
    pyro.sample("y", pdist.Normal(n + e, 0.5), obs=torch.tensor(y))


@pytest.mark.parametrize("model", [count, count_pyro])
def test_a_count_far_beyond_what_adds_up_to_one(model):
    """Guided rounds go there; whatever they find, a count without an end is never all seen."""
    posterior = exact.fit(model, 30.0, budget=2_000)
    n = np.arange(80)
    expected = logsumexp(stats.poisson.logpmf(n, 1) + normal(30, n, np.sqrt(0.5)))
    assert posterior.log_evidence == pytest.approx(expected, abs=0.01)
    assert not posterior.verdict.ok and posterior.discovery.unseen_bound > 0


def test_enumeration_ends_where_rounding_hides_the_rest():
    posterior = exact.fit(count, 30.0, budget=100, discovery=Enumeration(cover=1.0))
    assert len(posterior.paths) < 40 and not posterior.verdict.ok


def chosen(y):
    used = [numpyro.sample(f"z{j}", dist.Bernoulli(0.001)) for j in range(5)]
    mean = sum(3.0 * int(z) for z in used)
    numpyro.sample("y", dist.Normal(mean, 0.5), obs=y)


def test_single_precision_hides_more():
    posterior = exact.fit(chosen, 9.0, budget=500, precision="float32")
    ones = np.arange(6)
    terms = stats.binom.logpmf(ones, 5, 0.001) + normal(9, 3 * ones, 0.5)
    assert posterior.log_evidence == pytest.approx(logsumexp(terms), abs=0.01)


def impossible(y):
    k = int(numpyro.sample("k", dist.Categorical(probs=jnp.array([0.5, 0.5, 0.0]))))
    coin = int(numpyro.sample("coin", dist.Bernoulli(probs=0.0)))
    numpyro.sample("rare", dist.Bernoulli(1e-9))
    numpyro.sample("y", dist.Normal(10.0 * (k + coin), 0.5), obs=y)


def impossible_pyro(y):
    k = int(pyro.sample("k", pdist.Categorical(probs=torch.tensor([0.5, 0.5, 0.0]))))
    coin = int(pyro.sample("coin", pdist.Bernoulli(probs=0.0)))
    pyro.sample("rare", pdist.Bernoulli(1e-9))
    pyro.sample("y", pdist.Normal(10.0 * (k + coin), 0.5), obs=torch.tensor(y))


@pytest.mark.parametrize("model", [impossible, impossible_pyro])
@pytest.mark.parametrize("y", [10.0, 30.0])
def test_values_of_probability_zero_are_no_paths(model, y):
    """To which both libraries give a small density, for the sake of gradients: the data may ask for them."""
    posterior = exact.fit(model, y, budget=500)
    expected = logsumexp(normal(y, [0, 10], 0.5)) + np.log(0.5)
    assert posterior.log_evidence == pytest.approx(expected, abs=1e-6)
    assert posterior.verdict.ok and posterior.discovery.unseen_is_exact
    assert posterior.discovery.unseen_bound == 0 and not posterior.tree.unexplored()


def urn(y):
    """The last draw is certain; drawing otherwise would leave fewer than no balls."""
    red, black, k = 3, 2, 0
    while True:
        drawn = pyro.sample(f"d{k}", pdist.Bernoulli(torch.tensor(red / (red + black))))
        k += 1
        if drawn:
            break
        black -= 1
    z = pyro.sample("z", pdist.Normal(float(k), 1.0))
    pyro.sample("y", pdist.Normal(z, 1.0), obs=torch.tensor(y))


def test_what_cannot_happen_is_not_unseen():
    posterior = exact.fit(urn, 2.0, budget=500)
    assert posterior.discovery.unseen_is_exact and posterior.discovery.unseen_bound == 0
