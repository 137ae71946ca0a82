"""Whole runs against exact evidences."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy import stats

import pathmix
from pathmix.discovery import PriorDiscovery
from pathmix.frontends.recognise import bind
from pathmix.guides.fullrank import FullRankParams
from pathmix.program.seeds import Seed
from pathmix.training.compiled import make_sample
from tests import exact
from tests.paths import target_of
from tests.zoo import programs


def test_two_branches():
    posterior = exact.fit(programs.two_branches, 2.0)
    truth = exact.two_branches(2.0)
    weights = dict(zip(truth, exact.softmax(list(truth.values())), strict=True))
    assert posterior.weights.keys() == weights.keys()
    for label, weight in weights.items():
        assert posterior.weights[label] == pytest.approx(weight, abs=0.01)
    assert posterior.elbo == pytest.approx(exact.logsumexp(list(truth.values())), abs=0.05)
    assert all(path.acceptance == 1 and path.region.kind == "box" for path in posterior.paths)


def test_ten_branches():
    posterior = exact.fit(programs.ten_branches, 2.0, budget=30_000)
    truth = exact.ten_branches(2.0)
    labels = ["u <= -4", *(f"{k} < u <= {k + 1}" for k in range(-4, 4)), "u > 4"]
    assert set(posterior.weights) == set(labels)
    for label, weight in zip(labels, exact.softmax(truth), strict=True):
        assert posterior.weights[label] == pytest.approx(weight, abs=0.01)
    assert posterior.elbo == pytest.approx(exact.logsumexp(truth), abs=0.05)
    assert all(path.acceptance == 1 and path.gradient == "reparam" for path in posterior.paths)
    assert posterior.address_weights == {("u", "x"): pytest.approx(1.0)}


def test_ten_branches_the_papers_way():
    """Score-function gradients and truncation by rejection, with the paper's budget."""
    posterior = exact.fit(
        programs.ten_branches, 2.0, budget=100_000, particles=5, boxes=False, gradient="score"
    )
    truth = exact.softmax(exact.ten_branches(2.0))
    by_decisions = {
        len(path.path.decisions): path for path in posterior.paths if path.path.decisions[-1].value
    }
    for z in range(9):
        assert by_decisions[z + 1].weight == pytest.approx(truth[z], abs=0.05)
    (last,) = (path for path in posterior.paths if not path.path.decisions[-1].value)
    assert last.weight == pytest.approx(truth[9], abs=0.05)
    for path in posterior.paths:
        assert path.region.kind == "general" and path.gradient == "score"
        assert path.acceptance > 0.9 or path.weight < 0.01


def test_branch_on_a_sum():
    posterior = exact.fit(programs.sum_branch, 1.0, budget=60_000, guide="fullrank")
    truth = exact.sum_branch(1.0)
    weights = dict(zip(truth, exact.softmax(list(truth.values())), strict=True))
    for path in posterior.paths:
        name = path.addresses[-1]
        assert path.region.kind == "general" and path.gradient == "truncated"
        assert path.weight == pytest.approx(weights[name], abs=0.02)
        assert truth[name] - 0.15 < path.elbo < truth[name] + 0.05
        assert path.acceptance > 0.6


def test_truncated_gradients_are_closer_than_the_surrogate():
    """Why "auto" leaves the paper's way on general regions."""
    truth = exact.sum_branch(1.0)
    gaps = {}
    for gradient in ("score", "auto"):
        posterior = exact.fit(
            programs.sum_branch, 1.0, budget=40_000, gradient=gradient, guide="meanfield", starts=1
        )
        gaps[gradient] = max(truth[path.addresses[-1]] - path.elbo for path in posterior.paths)
    assert gaps["auto"] < 0.35 < 0.7 < gaps["score"]


def test_a_narrow_strip():
    """A region that few draws of any mean-field guide hit: training must not lose it."""

    def model(y):
        a = numpyro.sample("a", dist.Normal(0, 1))
        b = numpyro.sample("b", dist.Normal(0, 1))
        z = numpyro.sample("z", dist.Normal(2.0 if abs(a - b) < 0.1 else -2.0, 1))
        numpyro.sample("y", dist.Normal(z, 1), obs=y)

    posterior = exact.fit(model, 1.0)
    inside = 2 * stats.norm.cdf(0.1 / np.sqrt(2)) - 1
    truth = {True: np.log(inside) + stats.norm.logpdf(1, 2, np.sqrt(2))}
    truth[False] = np.log(1 - inside) + stats.norm.logpdf(1, -2, np.sqrt(2))
    for path in posterior.paths:
        exactly = truth[path.path.decisions[0].value]
        assert exactly - 0.3 < path.elbo < exactly + 0.15


def test_polynomial_degree_with_the_full_rank_guide():
    arguments = programs.POLYNOMIAL_X, programs.POLYNOMIAL_Y
    posterior = exact.fit(programs.polynomial, *arguments, guide="fullrank")
    truth = exact.polynomial(*arguments)
    for degree, weight in enumerate(exact.softmax(truth)):
        assert posterior.weights[f"degree={degree}"] == pytest.approx(weight, abs=0.01)
    assert posterior.elbo == pytest.approx(exact.logsumexp(truth), abs=0.01)


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("degree", [0, 1, 2, 3])
def test_an_exact_guide_gives_the_evidence_with_every_draw(degree):
    x, y = programs.POLYNOMIAL_X, programs.POLYNOMIAL_Y
    program = bind(programs.polynomial, (x, y))
    found = PriorDiscovery(64).discover(program, Seed.of(0), lambda slp, draws: None)
    path = next(p for p in found.paths if dict(p.slp.path.pinned)["degree"] == degree)
    target = target_of(path)
    mean, covariance = exact.polynomial_posterior(x, y, degree)
    order = [int(site.name.removeprefix("w")) for site in target.sites]  # of the vector
    mean, covariance = mean[order], covariance[np.ix_(order, order)]
    factor = np.linalg.cholesky(covariance)
    params = FullRankParams(
        jnp.asarray(mean), jnp.log(jnp.diag(jnp.asarray(factor))), jnp.asarray(np.tril(factor, -1))
    )
    noise = jax.random.normal(jax.random.key(1), (200 * (degree + 1),))
    guide = pathmix.FullRank()
    draws = make_sample(guide, degree + 1, 200)((), (), (params, noise))
    density = jax.vmap(lambda u: target.formula.density(u, target.arguments))(draws)
    assert np.all(density.inside)
    log_ratios = density.log_joint + density.log_det - jax.vmap(lambda u: guide.log_prob(params, u))(draws)
    np.testing.assert_allclose(log_ratios, exact.polynomial(x, y)[degree], rtol=0, atol=1e-10)


def test_a_path_without_free_sites_is_exact():
    posterior = exact.fit(programs.spike_and_slab, 1.5)
    spike = next(path for path in posterior.paths if path.label == "active=0")
    assert spike.status is pathmix.Status.EXACT
    assert spike.elbo == pytest.approx(np.log(0.5) - 0.5 * 1.5**2 - 0.5 * np.log(2 * np.pi), abs=1e-12)
    slab = np.log(0.5) - 0.5 * 1.5**2 / 5 - 0.5 * np.log(2 * np.pi * 5)
    assert posterior.weights["active=1"] == pytest.approx(exact.softmax([slab, spike.elbo])[0], abs=0.01)
