"""Discrete sites that decide nothing are summed out: against sums by hand, in both libraries."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pyro
import pytest
import torch
from numpyro.contrib.control_flow import scan
from scipy import integrate, stats
from scipy.special import logsumexp

import pathmix
from pathmix.engine.precision import engine_scope
from pathmix.frontends.recognise import bind
from pathmix.methods.dcc import DCC, RandomWalk
from pathmix.program.seeds import Seed
from pathmix.summation.tails import Cut
from tests import exact
from tests.summation import models

BOTH = ("numpyro", "pyro")


def model_and_data(library, name, data):
    return getattr(models, f"{library}_{name}"), torch.as_tensor(data) if library == "pyro" else data


def density(model, *args):
    """The log-density of the path that all runs take, as a function of its free sites."""
    with engine_scope("float64"):
        program = bind(model, args, {})
        (run,) = program.frontend.explore(program, Seed.of(0), np.ones(64, bool))
        slp = program.frontend.replay(program, run)
        assert slp.summation is not None
        graph = slp.graph.outputs([slp.LOG_PRIOR, slp.LOG_LIKELIHOOD])

    def log_joint(**free):
        inputs = [free.get(s.name, jnp.zeros(s.shape, s.dtype)) for s in slp.sites]
        return sum(graph(graph.consts, inputs))

    return slp, log_joint


@pytest.mark.parametrize("library", BOTH)
def test_a_chain(library):
    model, y = model_and_data(library, "chain", models.SERIES)
    posterior = exact.fit(model, y, discovery=pathmix.PriorDiscovery(20))
    assert posterior.verdict.ok
    assert [path.status.value for path in posterior.paths] == ["exact"]
    assert posterior.log_evidence == pytest.approx(models.forward(models.SERIES), abs=1e-8)
    draws, count = posterior.sample(1, 4_000), 4_000
    for t, wanted in enumerate(models.marginals(models.SERIES)):
        shares = np.bincount(np.asarray(draws[f"z_{t}"]), minlength=models.STATES) / count
        assert np.all(np.abs(shares - wanted) < 5 * np.sqrt(wanted * (1 - wanted) / count) + 1e-9)


@pytest.mark.parametrize("library", BOTH)
def test_a_mixture_with_assignments_in_a_plate(library):
    """Equal to the mixture, in value and gradient; the prior of the other sites is theirs alone."""
    model, y = model_and_data(library, "mixture", models.POINTS)
    slp, log_joint = density(model, y)

    def by_hand(means, scale):
        mixed = dist.MixtureSameFamily(dist.Categorical(probs=models.SIZES), dist.Normal(means, scale))
        prior = dist.Normal(0, 2).log_prob(means).sum() + dist.HalfNormal(1).log_prob(scale)
        return prior + mixed.log_prob(models.POINTS).sum()

    random = np.random.default_rng(3)
    with engine_scope("float64"):
        for _ in range(10):
            means, scale = jnp.asarray(random.normal(size=3)), jnp.asarray(random.uniform(0.1, 2))
            own = jax.value_and_grad(lambda m, s: log_joint(means=m, scale=s), (0, 1))(means, scale)
            wanted = jax.value_and_grad(by_hand, (0, 1))(means, scale)
            for a, b in zip(jax.tree.leaves(own), jax.tree.leaves(wanted), strict=True):
                assert np.allclose(a, b, rtol=1e-10, atol=1e-10)
        (log_prior,) = slp.graph.outputs([slp.LOG_PRIOR])(
            slp.graph.outputs([slp.LOG_PRIOR]).consts,
            [{"means": means, "scale": scale}.get(s.name, jnp.zeros(s.shape, s.dtype)) for s in slp.sites],
        )
        wanted = stats.norm.logpdf(means, 0, 2).sum() + stats.halfnorm.logpdf(scale)
        assert log_prior == pytest.approx(wanted, abs=1e-10)


@pytest.mark.parametrize("library", BOTH)
def test_a_factorial_chain(library):
    model, y = model_and_data(library, "factorial", models.SERIES[:10])
    posterior = exact.fit(model, y, discovery=pathmix.PriorDiscovery(10))
    assert posterior.log_evidence == pytest.approx(models.factorial(models.SERIES[:10]), abs=1e-8)


@pytest.mark.parametrize("library", BOTH)
def test_a_chain_in_a_branch_whose_length_is_random(library):
    model, y = model_and_data(library, "random_length", models.SERIES)
    posterior = exact.fit(model, y)
    logs = models.random_length(models.SERIES)
    assert posterior.log_evidence == pytest.approx(logsumexp(logs), abs=1e-8)
    found = {path.pinned.get("length", 0): path.weight for path in posterior.paths}
    weights = exact.softmax(logs)
    assert {key: pytest.approx(weight, abs=1e-8) for key, weight in enumerate(weights)} == found
    draws = posterior.sample(0, 200)
    lengths = 4 * np.nan_to_num(draws["length"])
    for t in range(12):
        assert np.array_equal(~draws.present(f"z_{t}"), lengths <= t)


@pytest.mark.parametrize("library", BOTH)
def test_counts_without_an_upper_end(library):
    """The support of what is seen depends on the count: too small ones are impossible, and that is all."""
    model, y = model_and_data(library, "counts", models.COUNTED)
    slp, log_joint = density(model, y)
    assert slp.summation is not None
    assert slp.summation.cut == ("there",)
    with engine_scope("float64"):
        for seen in (0.05, 0.3, 0.9):
            own, slope = jax.value_and_grad(lambda s: log_joint(seen=s))(jnp.asarray(seen))
            wanted = stats.beta.logpdf(seen, 2, 2) + models.counts(models.COUNTED, seen)
            assert own == pytest.approx(wanted, abs=1e-9)
            assert np.isfinite(slope)
    posterior = exact.fit(model, y)
    mass = integrate.quad(
        lambda seen: stats.beta.pdf(seen, 2, 2) * np.exp(models.counts(models.COUNTED, seen) + 20), 0, 1
    )[0]
    assert posterior.verdict.ok
    assert abs(posterior.log_evidence - np.log(mass) + 20) < 4 * posterior.log_evidence_error + 1e-3
    draws = posterior.sample(0, 300)
    assert np.all(np.asarray(draws["there"]) >= models.COUNTED.max(axis=1))


def test_what_was_summed_out_has_its_density_and_its_deterministic_sites():
    def model(y):
        scale = numpyro.sample("scale", dist.LogNormal(0, 1))
        with numpyro.plate("rows", len(y)):
            z = numpyro.sample("z", dist.Bernoulli(0.3))
            mean = numpyro.deterministic("mean", jnp.where(z == 1, 2.0, -1.0) * scale)
            numpyro.sample("y", dist.Normal(mean, 1.0), obs=y)

    y = np.array([1.9, -0.8, 0.4, 2.5])
    posterior = exact.fit(model, y)
    draws = posterior.sample(0, 100)
    z, scale = np.asarray(draws["z"]), np.asarray(draws["scale"])
    assert np.allclose(np.asarray(draws["mean"]), np.where(z == 1, 2.0, -1.0) * scale[:, None])

    def log_joint(scale, z):
        means = np.where(z == 1, 2.0, -1.0) * scale
        return stats.bernoulli.logpmf(z, 0.3).sum() + stats.norm.logpdf(y, means, 1).sum()

    settings = [np.array(s) for s in np.ndindex(2, 2, 2, 2)]
    logs = np.array([posterior.log_prob({"scale": 0.9, "z": setting}) for setting in settings])
    wanted = np.array([log_joint(0.9, setting) for setting in settings])
    assert np.allclose(logs - logsumexp(logs), wanted - logsumexp(wanted), atol=1e-8)
    assert posterior.log_prob({"scale": 0.9, "z": np.array([0, 1, 0, 2])}) == -np.inf


@pytest.mark.parametrize("library", BOTH)
def test_a_file_has_what_draws_need(library, tmp_path):
    model, y = model_and_data(library, "mixture", models.POINTS)
    posterior = exact.fit(model, y, budget=2_000, discovery=pathmix.PriorDiscovery(50))
    posterior.save(tmp_path / "fit.pathmix")
    loaded = pathmix.load(tmp_path / "fit.pathmix")
    for name, values in posterior.sample(3, 50).items():
        assert np.array_equal(values, loaded.sample(3, 50)[name])


def test_assignments_in_a_plate_do_not_hide_the_orders_of_clusters():
    """Three means have 3! places; the evidence has all of them."""

    def mixture(y, *, summed):
        means = numpyro.sample("means", dist.Normal(0.0, 2.0).expand([3]))
        with numpyro.plate("rows", len(y)):
            if summed:
                mixed = dist.MixtureSameFamily(
                    dist.Categorical(probs=jnp.ones(3) / 3), dist.Normal(means, 0.4)
                )
                numpyro.sample("y", mixed, obs=y)
            else:
                z = numpyro.sample("z", dist.Categorical(probs=jnp.ones(3) / 3))
                numpyro.sample("y", dist.Normal(means[z], 0.4), obs=y)

    own, wanted = (
        pathmix.SDVI(mixture, progress=False).run(0, models.POINTS, summed=summed) for summed in (False, True)
    )
    error = np.hypot(own.log_evidence_error, wanted.log_evidence_error)
    assert own.verdict.ok
    assert wanted.verdict.ok
    assert abs(own.log_evidence - wanted.log_evidence) < 4 * error


def test_where_nothing_is_gained_each_value_is_a_path():
    """All dice meet in the sum, so a table has as many cells as there are settings."""

    def dice():
        rolled = [numpyro.sample(f"die_{i}", dist.DiscreteUniform(1, 6)) for i in range(2)]
        numpyro.sample("total", dist.Normal(sum(rolled), 0.1), obs=9.0)

    posterior = exact.fit(dice, discovery=pathmix.Enumeration())
    assert {tuple(path.pinned.values()) for path in posterior.paths if path.weight > 0.1} == {
        (3, 6), (4, 5), (5, 4), (6, 3),
    }  # fmt: skip


@pytest.mark.parametrize("library", BOTH)
def test_a_site_that_decides_on_one_path_only(library):
    """There its values are paths; elsewhere it is summed out."""
    sample, d = (numpyro.sample, dist) if library == "numpyro" else (pyro.sample, pyro.distributions)
    number = float if library == "numpyro" else torch.tensor

    def model():
        first = sample("first", d.Bernoulli(number(0.5)))
        states = [sample(f"z_{t}", d.Bernoulli(number(0.3))) for t in range(6)]
        if first == 1 and states[0] == 1:
            extra = sample("extra", d.Normal(number(0.0), 1.0))
            sample("seen", d.Normal(extra, 1.0), obs=number(1.0))
        for t in range(6):
            sample(f"y_{t}", d.Normal(1.0 * states[t], 1.0), obs=number(0.5 * t))

    posterior = exact.fit(model)

    def emitted(t, z):
        return stats.norm.logpdf(0.5 * t, z, 1)

    def summed(t):
        return np.logaddexp(np.log(0.7) + emitted(t, 0), np.log(0.3) + emitted(t, 1))

    rest = sum(summed(t) for t in range(1, 6))
    wanted = {
        (0, None): np.log(0.5) + summed(0) + rest,
        (1, 0): np.log(0.5 * 0.7) + emitted(0, 0) + rest,
        (1, 1): np.log(0.5 * 0.3) + emitted(0, 1) + rest + stats.norm.logpdf(1, 0, np.sqrt(2)),
    }
    found = {(path.pinned["first"], path.pinned.get("z_0")): path.log_evidence for path in posterior.paths}
    assert found.keys() == wanted.keys()
    for key, log_evidence in wanted.items():
        assert found[key] == pytest.approx(log_evidence, abs=0.02)
    assert posterior.log_evidence == pytest.approx(logsumexp(list(wanted.values())), abs=0.02)


def test_a_chain_inside_of_scan():
    """Its sites come as one vector; each step meets the one before."""

    def model(y):
        mean = numpyro.sample("mean", dist.Normal(2.0, 1.0))

        def step(before, seen):
            z = numpyro.sample("z", dist.Categorical(probs=jnp.asarray(models.NEXT)[before]))
            numpyro.sample("y", dist.Normal(mean * (z - 1.0), 1.0), obs=seen)
            return z, None

        scan(step, 0, y)

    y = models.SERIES
    _, log_joint = density(model, y)
    with engine_scope("float64"):
        for mean in (-1.0, 0.3, 2.5):
            seen = stats.norm.logpdf(y[:, None], mean * (np.arange(3) - 1.0), 1)
            logs = np.log(models.NEXT[0]) + seen[0]
            for emitted in seen[1:]:
                logs = logsumexp(logs[:, None] + np.log(models.NEXT), axis=0) + emitted
            wanted = logsumexp(logs) + stats.norm.logpdf(mean, 2, 1)
            assert log_joint(mean=jnp.asarray(mean)) == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize("library", BOTH)
def test_counts_that_only_the_data_ask_for(library):
    """Neither the prior draws nor the likely values of the other site show where the sum must go."""
    d, sample, plate = (
        (dist, numpyro.sample, numpyro.plate)
        if library == "numpyro"
        else (pyro.distributions, pyro.sample, pyro.plate)
    )
    where = jnp.where if library == "numpyro" else torch.where

    def model(y):
        with plate("rows", len(y)):
            rare = sample("rare", d.Bernoulli(0.002))
            count = sample("count", d.Poisson(where(rare == 1, 50.0, 1.0)))
            sample("y", d.Normal(1.0 * count, 5.0), obs=y)

    y = np.array([1.0, 0.0, 2.0, 45.0, 1.0])
    posterior = exact.fit(model, y if library == "numpyro" else torch.as_tensor(y))
    n = np.arange(300)
    prior = np.logaddexp(
        np.log(0.998) + stats.poisson.logpmf(n, 1), np.log(0.002) + stats.poisson.logpmf(n, 50)
    )
    wanted = logsumexp(prior + stats.norm.logpdf(y[:, None], n, 5), axis=1).sum()
    assert posterior.verdict.ok
    assert posterior.log_evidence == pytest.approx(wanted, abs=1e-8)


def test_a_posterior_beyond_the_sum_is_told(monkeypatch):
    def model(y):
        with numpyro.plate("rows", len(y)):
            count = numpyro.sample("count", dist.Poisson(2.0))
            numpyro.sample("y", dist.Normal(1.0 * count, 0.5), obs=y)

    monkeypatch.setattr("pathmix.summation.summing.values_of", lambda *_: Cut(20, True))
    posterior = exact.fit(model, np.array([60.0, 55.0, 1.0]))
    assert not posterior.verdict.ok
    assert "'count' were summed up to 19" in str(posterior.verdict)


def test_a_site_whose_support_depends_on_another():
    """Its values cannot be listed, so they are paths: each run has its own."""

    def model():
        a = numpyro.sample("a", dist.Binomial(5, 0.6))
        b = numpyro.sample("b", dist.Binomial(a, 0.5))
        numpyro.sample("y", dist.Normal(1.0 * b, 1.0), obs=1.2)

    posterior = exact.fit(model, discovery=pathmix.Enumeration())
    logs = stats.binom.logpmf(np.arange(6), 5, 0.3) + stats.norm.logpdf(1.2, np.arange(6), 1)
    assert posterior.log_evidence == pytest.approx(logsumexp(logs), abs=1e-8)


@pytest.mark.parametrize("library", BOTH)
@pytest.mark.parametrize("form", ["event", "observed event", "factor"])
def test_sums_that_the_program_makes_itself_are_taken_apart(library, form):
    """A vector that is one event, one that is seen as one, and a factor that is a sum."""
    d, sample, plate, factor = (
        (dist, numpyro.sample, numpyro.plate, numpyro.factor)
        if library == "numpyro"
        else (pyro.distributions, pyro.sample, pyro.plate, pyro.factor)
    )
    number = jnp.asarray if library == "numpyro" else torch.tensor

    def model(y):
        if form == "event":
            z = sample("z", d.Bernoulli(number(0.3)).expand([len(y)]).to_event(1))
        else:
            with plate("rows", len(y)):
                z = sample("z", d.Bernoulli(number(0.3)))
        if form == "factor":
            factor("y", d.Normal(2.0 * z, number(1.0)).log_prob(y).sum())
        else:
            sample("y", d.Normal(2.0 * z, number(1.0)).to_event(1), obs=y)

    y = np.linspace(-1, 3, 12)
    posterior = exact.fit(model, y if library == "numpyro" else torch.as_tensor(y))
    wanted = np.logaddexp(
        np.log(0.7) + stats.norm.logpdf(y, 0, 1), np.log(0.3) + stats.norm.logpdf(y, 2, 1)
    ).sum()
    assert [path.status.value for path in posterior.paths] == ["exact"]
    assert posterior.log_evidence == pytest.approx(wanted, abs=1e-8)
    means = np.asarray(posterior.sample(0, 1_000)["z"], float).mean(axis=0)
    shares = 1 / (1 + np.exp(np.log(0.7 / 0.3) + 2 - 2 * y))
    assert np.all(np.abs(means - shares) < 5 * np.sqrt(shares * (1 - shares) / 1_000) + 1e-9)


def test_chains_over_the_other_sites_have_what_was_summed_out():
    """Draws of DCC, their deterministic sites, and likelihoods at drawn values."""

    def model(y):
        scale = numpyro.sample("scale", dist.LogNormal(0, 1))
        with numpyro.plate("rows", len(y)):
            z = numpyro.sample("z", dist.Bernoulli(0.3))
            mean = numpyro.deterministic("mean", jnp.where(z == 1, 2.0, -1.0) * scale)
            numpyro.sample("y", dist.Normal(mean, 1.0), obs=y)

    y = np.array([1.9, -0.8, 0.4, 2.5, -1.2])
    posterior = DCC(model, kernel=RandomWalk(), iterations=20).run(0, y)
    draws = {name: np.asarray(values) for name, values in posterior.sample(0, 200).items()}
    means = np.where(draws["z"] == 1, 2.0, -1.0) * draws["scale"][:, None]
    assert np.allclose(draws["mean"], means)
    likelihoods = stats.norm.logpdf(y, means, 1).sum(axis=1)
    assert np.allclose(posterior.log_likelihood(0, 200, y), likelihoods)
    settings = [np.array(setting) for setting in np.ndindex(2, 2, 2, 2, 2)]
    shares = np.array([posterior.log_prob({"scale": 0.9, "z": setting}) for setting in settings])
    either = np.log(0.3) + stats.norm.logpdf(y, 1.8, 1), np.log(0.7) + stats.norm.logpdf(y, -0.9, 1)
    wanted = stats.lognorm.logpdf(0.9, 1) + np.logaddexp(*either).sum() - posterior.log_evidence
    assert logsumexp(shares) == pytest.approx(wanted, abs=1e-8)
