"""Programs made to mislead the search for evidences: it is right, or says that it is not."""

import itertools
from functools import cache

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro import sample
from scipy import stats

import pathmix
from tests import exact

GRID = np.linspace(-7, 7, 1_401)
CELL = 2 * np.log(GRID[1] - GRID[0])


def check(model, key, truth, seed):
    """Weights within 0.03 or a verdict that is not ok; evidences without doubt within five errors."""
    posterior = exact.fit(model, seed=seed, budget=10_000)
    weights = {key(path): path.weight for path in posterior.paths}
    shares = dict(zip(truth, exact.softmax(list(truth.values())), strict=True))
    for path in posterior.paths:
        if not path.doubts:
            error = max(5 * path.log_evidence_error, 0.03)
            assert path.log_evidence == pytest.approx(truth[key(path)], abs=error)
    assert not posterior.verdict.ok or weights == pytest.approx(shares, abs=0.03)
    return posterior


def bounded():
    """Both sites look alike, but one has a bound that few prior draws come to, and the posterior does."""
    x1 = sample("x1", dist.Normal(0, 1))
    if x1 < 2.5:
        x2 = sample("x2", dist.Normal(0, 1))
        sample("y", dist.Normal(x1 * x2, 0.1), obs=-3.0)
        sample("z", dist.Normal(x1 + x2, 0.1), obs=2.0)
    else:
        sample("y", dist.Normal(x1, 3), obs=-3.0)
        sample("z", dist.Normal(x1, 1), obs=2.0)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_bound_ends_a_symmetry(seed):
    a, b = GRID[:, None], GRID
    low = stats.norm.logpdf(a) + stats.norm.logpdf(b) + stats.norm.logpdf(-3, a * b, 0.1)
    low = low + stats.norm.logpdf(2, a + b, 0.1) + np.where(a < 2.5, 0, -np.inf)
    high = stats.norm.logpdf(GRID) + stats.norm.logpdf(-3, GRID, 3) + stats.norm.logpdf(2, GRID, 1)
    truth = {2: exact.logsumexp(low) + CELL, 1: exact.logsumexp(high[GRID >= 2.5]) + CELL / 2}
    posterior = check(bounded, lambda path: len(path.addresses), truth, seed)
    draws = posterior.sample(0, 500)
    assert np.all(np.isfinite(draws["x1"][draws.present("x1")])) and np.all(
        draws["x1"][draws.present("x2")] < 2.5
    )


def hinged():
    """Alike but for a hinge, beyond which the posterior is."""
    if sample("k", dist.Bernoulli(0.5)):
        a, b = sample("x1", dist.Normal(0, 1)), sample("x2", dist.Normal(0, 1))
        sample("y", dist.Normal(a + b, 0.3), obs=3.0)
        sample("z", dist.Normal(jnp.maximum(a - 2.4, 0), 0.1), obs=0.5)
    else:
        c = sample("c", dist.Normal(0, 1))
        sample("y", dist.Normal(c, 1), obs=3.0)
        sample("z", dist.Normal(c, 1), obs=0.5)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_hinge_ends_a_symmetry(seed):
    a, b = GRID[:, None], GRID
    two = stats.norm.logpdf(a) + stats.norm.logpdf(b) + stats.norm.logpdf(3, a + b, 0.3)
    two = two + stats.norm.logpdf(0.5, np.maximum(a - 2.4, 0), 0.1)
    one = stats.norm.logpdf(GRID) + stats.norm.logpdf(3, GRID, 1) + stats.norm.logpdf(0.5, GRID, 1)
    logs = {1: exact.logsumexp(two) + CELL, 0: exact.logsumexp(one) + CELL / 2}
    truth = {k: np.log(0.5) + log for k, log in logs.items()}
    check(hinged, lambda path: path.pinned["k"], truth, seed)


def sensors(dim, wide, narrow):
    """Two sensors, each of which may have failed: a wide mode, and a narrow one a third as heavy."""

    def model():
        k = sample("k", dist.Bernoulli(0.5))
        x = sample("x", dist.Normal(0, 1).expand([dim]).to_event(1)) if k else sample("c", dist.Normal(0, 1))
        for name, scale, seen in (("wide", wide, -0.7), ("narrow", narrow, 1.0)):
            if k:
                works = dist.Normal(x, scale).log_prob(seen).sum()
                value = jnp.logaddexp(works, dim * dist.Normal(0, 2).log_prob(seen)) - jnp.log(2)
            else:
                value = dim * dist.Normal(x, 1.5).log_prob(seen)
            numpyro.factor(name, value)

    return model


@pytest.mark.parametrize(("dim", "wide", "narrow"), [(2, 0.3, 0.03), (5, 0.4, 0.2)])
def test_a_narrow_mode_far_from_the_guide(dim, wide, narrow):
    logs = []
    for first, second in itertools.product([True, False], repeat=2):
        failed = (not first) * stats.norm.logpdf(-0.7, 0, 2) + (not second) * stats.norm.logpdf(1.0, 0, 2)
        seen = np.array([-0.7, 1.0])[[first, second]]
        noise = np.array([wide, narrow])[[first, second]]
        works = 0.0
        if len(seen):
            covariance = np.ones((len(seen), len(seen))) + np.diag(noise**2)
            works = stats.multivariate_normal.logpdf(seen, np.zeros(len(seen)), covariance)
        logs.append(dim * (failed + works))
    level = stats.norm.logpdf(GRID) + dim * (
        stats.norm.logpdf(GRID, -0.7, 1.5) + stats.norm.logpdf(GRID, 1, 1.5)
    )
    truth = {1: exact.logsumexp(logs) - np.log(8), 0: exact.logsumexp(level) + CELL / 2 - np.log(2)}
    check(sensors(dim, wide, narrow), lambda path: path.pinned["k"], truth, 0)


def test_a_doubted_path_is_not_excused_by_its_small_weight():
    """A prior a hundred thousand wide, and data that are sharp: the search may not find them, but says so."""

    def model(y):
        if sample("k", dist.Bernoulli(0.5)):
            mean, scale = sample("a", dist.Normal(0, 1e5)), sample("b", dist.LogNormal(0.0, 5.0))
        else:
            mean, scale = sample("c", dist.Cauchy(0.0, 1e3)), 1.0
        sample("y", dist.Normal(mean, scale).expand([3]).to_event(1), obs=y)

    posterior = exact.fit(model, np.array([1234.5, 1234.6, 1234.4]), seed=2)
    wide = next(path for path in posterior.paths if path.pinned["k"])
    assert not posterior.verdict.ok or wide.weight == pytest.approx(0.1045, abs=0.03)


def test_little_effort_keeps_what_the_guide_has_found():
    generator = np.random.default_rng(0)
    x = generator.normal(size=(60, 20))
    y = x @ generator.normal(size=20) + 0.3 * generator.normal(size=60)

    def model(x, y):
        if sample("k", dist.Bernoulli(0.5)):
            mean, scale = x @ sample("w", dist.Normal(0, 3).expand([20]).to_event(1)), 0.3
        else:
            mean, scale = 0.0, sample("s", dist.HalfNormal(10.0))
        sample("y", dist.Normal(mean, scale), obs=y)

    posterior = pathmix.SDVI(model, evidence_draws=2_000, progress=False).run(0, x, y)
    covariance = 9 * x @ x.T + 0.09 * np.eye(60)
    truth = np.log(0.5) + stats.multivariate_normal.logpdf(y, np.zeros(60), covariance)
    assert posterior.weights["k=1"] > 0.99
    assert posterior.log_evidence == pytest.approx(truth, abs=0.2)


def narrow_band(width):
    def model():
        if numpyro.sample("banded", dist.Bernoulli(0.5)):
            v = numpyro.sample("v", dist.Normal(0, 1))
            middle = 2 * jnp.sin(v) + numpyro.sample("u", dist.Normal(0, 1))
            numpyro.sample("y", dist.Uniform(middle - width, middle + width), obs=3.5)
        else:
            numpyro.sample("y", dist.Normal(numpyro.sample("w", dist.Normal(0, 1)), 1.0), obs=3.5)

    return model


def test_a_path_that_its_guide_misses_is_found_from_the_prior_on():
    """The guide is at the prior, and hits the band once in hundreds of draws, or never."""
    width = 0.05
    v = np.linspace(-9, 9, 100_001)
    edges = 3.5 - 2 * np.sin(v)[:, None] + [-width, width]
    in_band = np.diff(stats.norm.cdf(edges), axis=1)[:, 0] / (2 * width)
    banded = np.trapezoid(stats.norm.pdf(v) * in_band, v)
    truth = banded / (banded + stats.norm.pdf(3.5, 0, 2**0.5))
    posterior = exact.fit(narrow_band(width), budget=300)
    found, error = posterior.weights["banded=1"], posterior.weight_errors["banded=1"]
    assert found == pytest.approx(truth, abs=4.5 * error + 1e-9) and 0 < error < 0.1
    drawn = posterior.sample(0, 2_000)
    middle = 2 * np.sin(drawn["v"]) + drawn["u"]
    inside = np.abs(middle[drawn["banded"] == 1] - 3.5) <= width
    assert len(inside) > 500 and np.all(inside)


def test_a_path_in_which_no_draw_falls_is_never_settled():
    posterior = exact.fit(narrow_band(1e-6), budget=300)
    assert posterior.weights["banded=1"] == 0 and not posterior.verdict.ok
    assert "no draw had any density" in str(posterior.verdict)


def raw_units(scale, noise, wide, paths=2):
    """A regression in raw units, to which no guide gets in time, beside paths that are far below it."""
    generator = np.random.default_rng(1)
    x = generator.normal(size=(60, 10))
    y = x @ (generator.normal(size=10) * scale) + generator.normal(size=60) * noise

    def model(y):
        k = int(sample("k", dist.Categorical(probs=jnp.ones(paths) / paths)))
        if k == paths - 1:
            b = sample("b", dist.Normal(0, scale).expand([10]).to_event(1))
            sample("y", dist.Normal(x @ b, noise), obs=y)
        else:
            sample("y", dist.Normal(sample("c", dist.Normal(0, 1)) + 0.01 * k, wide), obs=y)

    return model, y


@pytest.mark.parametrize(("scale", "noise", "wide", "paths"), [(1e3, 10.0, 4e3, 2), (20.0, 0.3, 80.0, 20)])
def test_an_evidence_that_few_draws_tell_is_never_hopeless(scale, noise, wide, paths):
    model, y = raw_units(scale, noise, wide, paths)
    posterior = exact.fit(model, y, budget=10_000)
    true = f"k={paths - 1}"
    assert posterior.weights[true] > 0.99 or not posterior.verdict.ok


def test_modes_that_mirror_each_other():
    """Each search may hold one of them, and both find the same evidence."""

    def model():
        if sample("twin", dist.Bernoulli(0.5)):
            x = sample("x", dist.Normal(0, 1).expand([12]).to_event(1))
            near = [jnp.sum(dist.Normal(s * 1.5, 0.3).log_prob(x)) for s in (1, -1)]
            numpyro.factor("modes", jnp.logaddexp(*near) - jnp.log(2.0))
        else:
            x = sample("z", dist.Normal(0, 1).expand([12]).to_event(1))
            numpyro.factor("mode", jnp.sum(dist.Normal(1.5, 0.3).log_prob(x)))

    for seed in range(2):
        posterior = exact.fit(model, seed=seed, budget=4_000)
        right = posterior.weights["twin=1"] == pytest.approx(0.5, abs=0.03)
        assert right or not posterior.verdict.ok


def test_members_whose_names_have_two_numbers():
    y = np.random.default_rng(0).normal(size=(12, 2)) * 0.5 + 3.0 * np.array(
        [[1.0, -1.0]] * 6 + [[-1.0, 1.0]] * 6
    )

    def model(y):
        if sample("two", dist.Bernoulli(0.5)):
            means = jnp.stack(
                [jnp.stack([sample(f"mean_{k}_{d}", dist.Normal(0, 3)) for d in range(2)]) for k in range(2)]
            )
            each = jnp.sum(dist.Normal(means, 0.5).log_prob(y[:, None]), axis=-1)
            numpyro.factor("y", jnp.sum(jnp.logaddexp(*each.T) - jnp.log(2.0)))
        else:
            mean = jnp.stack([sample(f"one_{d}", dist.Normal(0, 3)) for d in range(2)])
            numpyro.factor("y", jnp.sum(dist.Normal(mean, 0.5).log_prob(y)))

    halves = 0.0
    for part in (y[:6], y[6:]):
        for d in range(2):
            covariance = 0.25 * np.eye(6) + 9.0
            halves += stats.multivariate_normal.logpdf(part[:, d], np.zeros(6), covariance)
    truth = np.log(0.5) + halves + 12 * np.log(0.5) + np.log(2.0)  # clusters are six deviations apart
    posterior = exact.fit(model, y, budget=4_000)
    path = next(path for path in posterior.paths if path.pinned["two"])
    assert path.log_evidence == pytest.approx(truth, abs=5 * path.log_evidence_error + 0.01)
    assert posterior.verdict.ok


@pytest.mark.parametrize("seed", [0, 1])
def test_clusters_of_unequal_shares_have_a_mode_for_each_way_to_name_them(seed):
    """Swaps are no symmetries here; all starts and both searches ended at one of the modes, with seed 1."""
    generator, shares = np.random.default_rng(3), (0.25, 0.5, 0.25)
    y = 2 * generator.normal(size=(3, 3))[np.arange(9) % 3] + 0.5 * generator.normal(size=(9, 3))

    @cache
    def block(rows):
        covariance = 0.25 * np.eye(len(rows)) + 4.0
        ends = np.zeros(len(rows))
        return sum(stats.multivariate_normal.logpdf(y[list(rows), d], ends, covariance) for d in range(3))

    def model(y):
        with numpyro.plate("clusters", 3):
            mean = sample("mean", dist.Normal(0, 2).expand([3]).to_event(1))
        parts = dist.Normal(mean, 0.5).to_event(1)
        with numpyro.plate("rows", 9):
            sample("y", dist.MixtureSameFamily(dist.Categorical(jnp.array(shares)), parts), obs=y)

    logs = []
    for chosen in itertools.product(range(3), repeat=9):
        blocks = [tuple(i for i in range(9) if chosen[i] == k) for k in range(3)]
        logs.append(sum(np.log(shares[k]) * len(b) + (block(b) if b else 0.0) for k, b in enumerate(blocks)))
    posterior = exact.fit(model, y, budget=2_000, seed=seed)
    (path,) = posterior.paths
    within = min(4.5 * path.log_evidence_error, 0.5)
    assert path.log_evidence == pytest.approx(exact.logsumexp(logs), abs=within)


@pytest.mark.parametrize("seed", [0, 1])
def test_signs_that_are_turned_round(seed):
    """The mirror image is worth less, so it is no symmetry. Given the factor, the loadings integrate out."""
    y = np.array([1.5, -0.9, 2.1, -1.4, 0.6, 1.1])

    def model(y):
        factor = sample("factor", dist.Normal(0.2, 1))
        loading = sample("loading", dist.Normal(0.2, 1).expand([6]).to_event(1))
        sample("y", dist.Normal(factor * loading, 0.1), obs=y)

    factor = np.linspace(-8, 8, 16_001)
    logs = stats.norm.logpdf(factor, 0.2, 1) + np.log(factor[1] - factor[0])
    logs = logs + stats.norm.logpdf(y[:, None], 0.2 * factor, np.sqrt(factor**2 + 0.01)).sum(axis=0)
    (path,) = exact.fit(model, y, budget=4_000, seed=seed).paths
    within = min(4.5 * path.log_evidence_error, 0.5)
    assert path.log_evidence == pytest.approx(exact.logsumexp(logs), abs=within)
