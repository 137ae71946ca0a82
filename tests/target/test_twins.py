"""Paths that are the same problem are fitted once, and keep their names."""

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
from tests import exact

X = np.linspace(0, 1, 5)


def ordered_terms(y):
    """A slope and a curve, drawn in either order; and a slope alone, under another name."""
    k = int(numpyro.sample("k", dist.Categorical(jnp.array([0.3, 0.3, 0.4]))))
    if k == 0:
        mean = X * numpyro.sample("slope", dist.Normal(0, 1)) + X**2 * numpyro.sample(
            "curve", dist.Normal(0, 2)
        )
    elif k == 1:
        mean = X**2 * numpyro.sample("bend", dist.Normal(0, 2)) + X * numpyro.sample(
            "rise", dist.Normal(0, 1)
        )
    else:
        mean = X * numpyro.sample("only", dist.Normal(0, 1))
    numpyro.deterministic("mean", mean)
    numpyro.sample("y", dist.Normal(mean, 0.3).to_event(1), obs=y)


def ordered_terms_in_pyro(y):
    x, y = torch.as_tensor(X), torch.as_tensor(y)
    k = int(pyro.sample("k", pyro_dist.Categorical(torch.tensor([0.3, 0.3, 0.4]))))
    if k == 0:
        mean = x * pyro.sample("slope", pyro_dist.Normal(0, 1)) + x**2 * pyro.sample(
            "curve", pyro_dist.Normal(0, 2)
        )
    elif k == 1:
        mean = x**2 * pyro.sample("bend", pyro_dist.Normal(0, 2)) + x * pyro.sample(
            "rise", pyro_dist.Normal(0, 1)
        )
    else:
        mean = x * pyro.sample("only", pyro_dist.Normal(0, 1))
    pyro.deterministic("mean", mean)
    pyro.sample("y", pyro_dist.Normal(mean, 0.3).to_event(1), obs=y)


Y = 2.0 * X - 3.0 * X**2 + np.array([0.1, -0.2, 0.0, 0.2, -0.1])


@pytest.mark.parametrize("model", [ordered_terms, ordered_terms_in_pyro])
def test_twins_share_a_fit_and_keep_their_names(model):
    posterior = exact.fit(model, Y, budget=12_000, guide="fullrank")
    assert posterior.timings.paths == 3 and posterior.timings.problems == 2
    first, second = (next(p for p in posterior.paths if p.pinned["k"] == k) for k in (0, 1))
    assert first.elbo == second.elbo and first.steps == second.steps
    covariance = np.outer(X, X) + 4 * np.outer(X**2, X**2) + 0.09 * np.eye(5)
    log_z = stats.multivariate_normal.logpdf(Y, np.zeros(5), covariance) + np.log(0.3)
    assert first.elbo == pytest.approx(log_z, abs=0.02)
    draws = posterior.sample(0, 4_000)
    means = {n: float(np.nanmean(draws[n])) for n in ("slope", "curve", "bend", "rise")}
    design = np.stack([X, X**2], axis=1)
    precision = design.T @ design / 0.09 + np.diag([1.0, 0.25])
    slope, curve = np.linalg.solve(precision, design.T @ Y / 0.09)
    # About 2,000 draws of each, of deviation below 1.
    assert [means["slope"], means["rise"]] == pytest.approx([slope, slope], abs=0.15)
    assert [means["curve"], means["bend"]] == pytest.approx([curve, curve], abs=0.15)
    for left, right in (("slope", "curve"), ("rise", "bend")):
        rows = draws.present(left)
        mean = np.asarray(draws[left])[rows, None] * X + np.asarray(draws[right])[rows, None] * X**2
        np.testing.assert_allclose(np.asarray(draws["mean"])[rows], mean, atol=1e-12)


def test_paths_that_differ_in_a_number_are_not_twins():
    def model(y):
        k = int(numpyro.sample("k", dist.Bernoulli(0.5)))
        x = numpyro.sample("x", dist.Normal(float(k), 1))
        numpyro.sample("y", dist.Normal(x, 1), obs=y)

    posterior = exact.fit(model, 1.7, budget=4_000, weights="elbo")
    assert posterior.timings.problems == 2 and posterior.timings.structures == 1
    for path in posterior.paths:
        log_z = np.log(0.5) + stats.norm.logpdf(1.7, path.pinned["k"], np.sqrt(2))
        assert path.elbo == pytest.approx(log_z, abs=0.01)


def test_twins_in_boxes_are_cut_by_their_own_names():
    """Both paths bound their site in the same way; their prior draws differ, and scale their maps."""

    def model(y):
        if numpyro.sample("k", dist.Bernoulli(0.5)):
            x = numpyro.sample("a", dist.Normal(0, 1))
        else:
            x = numpyro.sample("b", dist.Normal(0, 1))
        numpyro.sample("y", dist.Normal(x if x > 0.5 else 0.0, 1), obs=y)

    posterior = exact.fit(model, 1.0, budget=20_000)
    assert posterior.timings.paths == 4 and posterior.timings.problems == 2
    draws = posterior.sample(1, 3_000)
    for name in ("a", "b"):
        values = draws[name][draws.present(name)]
        assert 0.4 < np.mean(values > 0.5) < 0.6 or np.any(values > 0.5)
    grid = np.linspace(0.5, 9, 4_001)
    inside = np.trapezoid(stats.norm.pdf(grid) * stats.norm.pdf(1.0, grid), grid)
    outside = stats.norm.cdf(0.5) * stats.norm.pdf(1.0)
    truth = {True: inside / (inside + outside) / 2, False: outside / (inside + outside) / 2}
    for path in posterior.paths:
        assert path.weight == pytest.approx(truth[">" in path.label], abs=0.01)


def test_a_guide_of_its_own_makes_a_path_no_twin():
    def guide(slp):
        return pathmix.FullRank() if dict(slp.path.pinned)["k"] == 0 else pathmix.MeanField()

    posterior = exact.fit(ordered_terms, Y, budget=2_000, guide=guide, weights="elbo")
    assert posterior.timings.problems == 3
    kinds = {path.pinned["k"]: type(path.guide.family) for path in posterior.paths}
    assert kinds == {0: pathmix.FullRank, 1: pathmix.MeanField, 2: pathmix.MeanField}
