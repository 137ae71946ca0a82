"""Enumeration: paths by the probability of their discrete sites, in both libraries."""

import itertools

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pyro
import pyro.distributions as pyro_dist
import pytest
import torch
from scipy import stats

import pathmix
from pathmix import Enumeration
from pathmix.errors import OptionError
from tests import exact


def fit(model, *args, budget=600, **options):
    return exact.fit(model, *args, budget=budget, discovery=Enumeration(**options))


def numpyro_steps(y):
    n = 0
    while numpyro.sample(f"on{n}", dist.Bernoulli(0.5)):
        n += 1
    numpyro.sample("y", dist.Normal(n, 1.0), obs=y)


def pyro_steps(y):
    n = 0
    while pyro.sample(f"on{n}", pyro_dist.Bernoulli(0.5)):
        n += 1
    pyro.sample("y", pyro_dist.Normal(float(n), 1.0), obs=y)


@pytest.mark.parametrize(("model", "y"), [(numpyro_steps, 20.0), (pyro_steps, torch.tensor(20.0))])
def test_steps_that_no_prior_run_takes(model, y):
    posterior = fit(model, y, cover=1 - 1e-8)
    steps = np.arange(60)
    truth = exact.softmax((steps + 1) * np.log(0.5) + stats.norm.logpdf(20.0, steps, 1.0))
    found = {len(path.addresses) - 1: path.weight for path in posterior.paths}
    for n in range(15, 24):
        assert found[n] == pytest.approx(truth[n], abs=1e-4)
    assert posterior.discovery.unseen_is_exact and 0 < posterior.discovery.unseen_mass <= 1e-8
    assert not posterior.verdict.ok


def numpyro_fault(y):
    if numpyro.sample("fault", dist.Bernoulli(1e-6)):
        mean = numpyro.sample("shifted", dist.Normal(6.0, 1.0))
    else:
        mean = numpyro.sample("usual", dist.Normal(0.0, 1.0))
    numpyro.sample("y", dist.Normal(mean, 0.5), obs=y)


def pyro_fault(y):
    if pyro.sample("fault", pyro_dist.Bernoulli(1e-6)):
        mean = pyro.sample("shifted", pyro_dist.Normal(6.0, 1.0))
    else:
        mean = pyro.sample("usual", pyro_dist.Normal(0.0, 1.0))
    pyro.sample("y", pyro_dist.Normal(mean, 0.5), obs=y)


@pytest.mark.parametrize(("model", "y"), [(numpyro_fault, 6.2), (pyro_fault, torch.tensor(6.2))])
def test_a_path_of_prior_mass_one_in_a_million(model, y):
    posterior = fit(model, y, cover=1.0)
    logs = np.log([1 - 1e-6, 1e-6]) + stats.norm.logpdf(6.2, [0.0, 6.0], np.sqrt(1.25))
    assert posterior.weights["fault=1"] == pytest.approx(exact.softmax(logs)[1], abs=1e-3)
    assert 0.05 < posterior.weights["fault=1"] < 0.95
    assert posterior.verdict.ok and posterior.discovery.unseen_mass == 0
    masses = {path.pinned["fault"]: path.prior_mass for path in posterior.paths}
    assert masses == pytest.approx({0: 1 - 1e-6, 1: 1e-6})


@pytest.mark.parametrize("most", [2, pytest.param(4, marks=pytest.mark.trust)])
def test_dice(most):
    def model(total):
        count = int(numpyro.sample("count", dist.Categorical(probs=jnp.full(most, 1 / most)))) + 1
        faces = [
            int(numpyro.sample(f"die{i}", dist.Categorical(probs=jnp.full(6, 1 / 6)))) + 1
            for i in range(count)
        ]
        numpyro.sample("total", dist.Normal(sum(faces), 0.01), obs=total)

    posterior = fit(model, 7.0, cover=1.0)
    settings = {n: list(itertools.product(range(1, 7), repeat=n)) for n in range(1, most + 1)}
    assert len(posterior.paths) == sum(map(len, settings.values()))
    ways = {n: sum(sum(faces) == 7 for faces in settings[n]) / 6**n for n in settings}
    counts = dict.fromkeys(settings, 0.0)
    for path in posterior.paths:
        counts[path.pinned["count"] + 1] += path.weight
    assert counts == pytest.approx({n: share / sum(ways.values()) for n, share in ways.items()})
    assert posterior.verdict.ok


def test_counts_without_an_end_go_as_far_as_the_cover_asks():
    def model(y):
        count = int(numpyro.sample("count", dist.Poisson(3.0)))
        numpyro.sample("y", dist.Normal(count, 1.0), obs=y)

    for cover in (0.9, 0.999, 1 - 1e-7):
        posterior = fit(model, 9.0, cover=cover, samples=3)
        counts = sorted(path.pinned["count"] for path in posterior.paths)
        assert stats.poisson.pmf(counts, 3.0).sum() >= cover
        assert posterior.discovery.unseen_mass == pytest.approx(1 - stats.poisson.pmf(counts, 3.0).sum())
    assert len(counts) < 40


def test_vectors():
    def model(y):
        with numpyro.plate("items", 3):
            chosen = numpyro.sample("chosen", dist.Bernoulli(jnp.array([0.02, 0.5, 0.98])))
        if chosen[0] and chosen[1]:
            numpyro.sample("z", dist.Normal(0, 1))
        numpyro.sample("y", dist.Normal(jnp.sum(chosen), 1.0), obs=y)

    posterior = fit(model, 1.0, cover=1.0, samples=5)
    chances = np.array([0.02, 0.5, 0.98])
    for path in posterior.paths:
        chosen = np.array(path.pinned["chosen"])
        assert path.prior_mass == pytest.approx(np.prod(np.where(chosen, chances, 1 - chances)))
    assert len(posterior.paths) == 8 and posterior.verdict.ok


def test_probabilities_that_depend_on_earlier_sites():
    def model(y):
        first = int(numpyro.sample("first", dist.Categorical(probs=jnp.array([0.999, 0.001]))))
        rate = [0.5, 0.9][first]
        second = numpyro.sample("second", dist.Binomial(2 + first, rate))
        numpyro.sample("y", dist.Normal(int(second), 1.0), obs=y)

    posterior = fit(model, 2.0, cover=1.0, samples=10)
    masses = {(path.pinned["first"], path.pinned["second"]): path.prior_mass for path in posterior.paths}
    truth = {
        (first, second): [0.999, 0.001][first] * stats.binom.pmf(second, 2 + first, [0.5, 0.9][first])
        for first in range(2)
        for second in range(3 + first)
    }
    assert masses == pytest.approx(truth) and posterior.verdict.ok


def test_continuous_branches_below_a_rare_value():
    def model(y):
        x = numpyro.sample("x", dist.Normal(0, 1))
        if numpyro.sample("rare", dist.Bernoulli(1e-4)):
            mean = 3.0 if x < 0.5 else -3.0
        else:
            mean = 0.0
        numpyro.sample("y", dist.Normal(mean, 1.0), obs=y)

    posterior = fit(model, 3.0, cover=1.0, budget=2_000)
    assert len(posterior.paths) == 3
    share = stats.norm.cdf(0.5)
    masses = sorted(path.prior_mass for path in posterior.paths if path.pinned["rare"])
    assert sum(masses) == pytest.approx(1e-4) and masses[1] / 1e-4 == pytest.approx(share, abs=0.2)
    logs = np.log([1 - 1e-4, 1e-4 * share, 1e-4 * (1 - share)]) + stats.norm.logpdf(3.0, [0, 3, -3], 1.0)
    found = [path.weight for path in posterior.paths]
    assert found == pytest.approx(sorted(exact.softmax(logs), reverse=True), abs=0.003)


def test_values_that_the_program_cannot_take_stay_unseen():
    def model(y):
        k = int(numpyro.sample("k", dist.Categorical(probs=jnp.array([0.9, 0.0999, 1e-4]))))
        if k == 2:
            raise ValueError("not that")
        numpyro.sample("y", dist.Normal(k, 1.0), obs=y)

    posterior = fit(model, 0.0, cover=1.0, samples=50)
    assert posterior.discovery.unseen_mass == pytest.approx(1e-4) and not posterior.verdict.ok


def test_max_paths():
    posterior = fit(numpyro_steps, 3.0, cover=1.0, max_paths=12)
    assert len(posterior.paths) == 12


def test_the_same_seed_gives_the_same_paths():
    one, other = (fit(numpyro_steps, 5.0, cover=1 - 1e-6) for _ in range(2))
    assert one.weights == other.weights


@pytest.mark.parametrize("options", [{"cover": 0}, {"cover": 1.5}, {"cover": "all"}, {"samples": 0}])
def test_options_are_checked(options):
    with pytest.raises(OptionError, match=rf"Enumeration\({next(iter(options))}=\.\.\.\)"):
        Enumeration(**options)


def test_markov_chains_take_it_too():
    posterior = pathmix.DCC(
        numpyro_fault, discovery=Enumeration(cover=1.0), iterations=30, progress=False
    ).run(0, 6.2)
    assert {path.pinned["fault"] for path in posterior.paths} == {0, 1}
