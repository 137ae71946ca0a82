"""Exchangeable sites are found, whatever they look like, and count in all their orders."""

import math

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pyro
import pyro.distributions as pdist
import pytest
import torch
from scipy import stats

from pathmix.engine.executables import Executables
from pathmix.engine.requests import answered
from pathmix.evidence.symmetry import exchangeable
from tests import exact
from tests.evidence.searching import fit_of, paths_of

pytestmark = pytest.mark.usefixtures("engine")
Y = np.array([-2.1, -1.8, -2.4, 1.9, 2.2, 2.0])


def groups_of(model, *args):
    """The exchangeable members of a program that has one path: how many, and of which sites."""
    (path,), executables = paths_of(model, *args), Executables()
    fit = fit_of(path, executables)
    groups, sites = answered(exchangeable(fit, path.draws), executables.answer), fit.target.sites
    named = [{sites[s].name for family in group.families for s in family.sites} for group in groups]
    return {tuple(sorted(names)): group.members for names, group in zip(named, groups, strict=True)}


def vectors(y):
    weights = numpyro.sample("weights", dist.Dirichlet(jnp.ones(3)))
    means = numpyro.sample("means", dist.Normal(0, 3).expand([3]).to_event(1))
    numpyro.sample("y", dist.MixtureSameFamily(dist.Categorical(weights), dist.Normal(means, 1)), obs=y)


def loops(y):
    means = [numpyro.sample(f"mu_{k}", dist.Normal(0, 3)) for k in range(3)]
    scales = [numpyro.sample(f"sigma_{k}", dist.HalfNormal(1)) for k in range(3)]
    parts = dist.Normal(jnp.stack(means), jnp.stack(scales))
    numpyro.sample("y", dist.MixtureSameFamily(dist.Categorical(jnp.ones(3) / 3), parts), obs=y)


def loops_in_pyro(y):
    means = torch.stack([pyro.sample(f"mu_{k}", pdist.Normal(0, 3)) for k in range(3)])
    parts = pdist.Normal(means, 1.0)
    with pyro.plate("rows", len(y)):
        pyro.sample(
            "y", pdist.MixtureSameFamily(pdist.Categorical(torch.ones(3)), parts), obs=torch.tensor(y)
        )


def left_and_right(y):
    """Blocks that only a word tells apart."""
    parts = [
        (pyro.sample(f"{side}_mean", pdist.Normal(0, 3)), pyro.sample(f"{side}_scale", pdist.HalfNormal(1)))
        for side in ("left", "right")
    ]
    means, scales = (torch.stack(values) for values in zip(*parts, strict=True))
    share = pyro.sample("share", pdist.Dirichlet(torch.ones(2)))
    with pyro.plate("rows", len(y)):
        mixture = pdist.MixtureSameFamily(pdist.Categorical(share), pdist.Normal(means, scales))
        pyro.sample("y", mixture, obs=torch.tensor(y))


def in_the_plane(y):
    means = numpyro.sample("means", dist.Normal(0, 3).expand([3, 2]).to_event(2))
    logs = dist.Normal(means[:, None], 1).log_prob(jnp.stack([y, y], axis=1)).sum(-1)
    numpyro.factor("mixture", jnp.sum(jnp.log(jnp.mean(jnp.exp(logs), axis=0))))


def one_of_its_own(y):
    """The first cluster is at home: the other two can be exchanged."""
    means = numpyro.sample("means", dist.Normal(jnp.array([5.0, 0.0, 0.0]), 3).to_event(1))
    numpyro.sample(
        "y", dist.MixtureSameFamily(dist.Categorical(jnp.ones(3) / 3), dist.Normal(means, 1)), obs=y
    )


def ends_alike(y):
    """The outer two can be exchanged, which are no neighbours."""
    means = numpyro.sample("means", dist.Normal(0, 3).expand([3]).to_event(1))
    shares = dist.Categorical(jnp.array([0.25, 0.5, 0.25]))
    numpyro.sample("y", dist.MixtureSameFamily(shares, dist.Normal(means, 1)), obs=y)


def regression(y):
    weight = numpyro.sample("weight", dist.Normal(0, 1).expand([3]).to_event(1))
    numpyro.sample("y", dist.Normal(jnp.vander(jnp.arange(6.0) / 3, 3) @ weight, 1), obs=y)


def unequal_shares(y):
    means = numpyro.sample("means", dist.Normal(0, 3).expand([2]).to_event(1))
    shares = dist.Categorical(jnp.array([0.3, 0.7]))
    numpyro.sample("y", dist.MixtureSameFamily(shares, dist.Normal(means, 1)), obs=y)


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (vectors, {("means", "weights"): (0, 1, 2)}),
        (loops, {("mu_0", "mu_1", "mu_2", "sigma_0", "sigma_1", "sigma_2"): (0, 1, 2)}),
        (loops_in_pyro, {("mu_0", "mu_1", "mu_2"): (0, 1, 2)}),
        (left_and_right, {("left_mean", "left_scale", "right_mean", "right_scale", "share"): (0, 1)}),
        (in_the_plane, {("means",): (0, 1, 2)}),
        (one_of_its_own, {("means",): (1, 2)}),
        (ends_alike, {("means",): (0, 2)}),
        (regression, {}),
        (unequal_shares, {}),
    ],
)
def test_groups(model, expected):
    found = groups_of(model, Y)
    if model is in_the_plane:  # the two coordinates, which are twins here, may be exchanged instead
        assert set(found) == {("means",)}
    else:
        assert found == expected


def one_or_two(y):
    if numpyro.sample("two", dist.Bernoulli(0.5)):
        means = numpyro.sample("means", dist.Normal(0, 3).expand([2]).to_event(1))
    else:
        means = numpyro.sample("mean", dist.Normal(0, 3))[None]
    count = len(means)
    parts = dist.Normal(means, 1)
    numpyro.sample("y", dist.MixtureSameFamily(dist.Categorical(jnp.ones(count) / count), parts), obs=y)


def truth():
    """By quadrature on a grid."""
    grid = np.linspace(-12, 12, 1_201)
    log_prior = stats.norm.logpdf(grid, 0, 3) + math.log(grid[1] - grid[0])
    likelihoods = stats.norm.pdf(Y[:, None], grid, 1)
    one = np.log(likelihoods).sum(axis=0)
    two = np.log((likelihoods[:, :, None] + likelihoods[:, None]) / 2).sum(axis=0)
    logs = [exact.logsumexp(log_prior + one), exact.logsumexp(log_prior[:, None] + log_prior + two)]
    return np.log(0.5) + np.array(logs)


def test_all_orders_count():
    posterior = exact.fit(one_or_two, Y, budget=4_000)
    by_count = {path.pinned["two"]: path for path in posterior.paths}
    for path, log_z in zip((by_count[0], by_count[1]), truth(), strict=True):
        assert path.log_evidence == pytest.approx(log_z, abs=4.5 * path.log_evidence_error)
    assert posterior.verdict.ok
    # Both orders are drawn, equally often; the density is the same for both.
    draws = posterior.marginal("means", count=4_000).reshape(-1, 2)
    assert np.mean(draws[:, 0] < draws[:, 1]) == pytest.approx(0.5, abs=4.5 / 2 / np.sqrt(len(draws)))
    one, other = ({"two": 1, "means": np.array(means)} for means in ([-2.0, 2.1], [2.1, -2.0]))
    assert posterior.log_prob(one) == pytest.approx(posterior.log_prob(other))


def test_without_symmetry_the_elbo_s_guide_counts_for_one_order():
    posterior = exact.fit(one_or_two, Y, budget=4_000, symmetry=False, smc_evaluations=0)
    two = next(path for path in posterior.paths if path.pinned["two"])
    # The prior finds both orders all the same, and says so: they agree, or the path is in doubt.
    assert two.doubts or two.log_evidence == pytest.approx(truth()[1], abs=4.5 * two.log_evidence_error)


def in_boxes(y):
    """Two of four coins come up before the last: nothing but their bounds depends on them."""
    u = [numpyro.sample(f"u{i}", dist.Uniform(0, 1)) for i in range(4)]
    heads = sum(int(one < 0.3) for one in u)
    numpyro.sample("y", dist.Normal(heads, 1), obs=y)


def in_boxes_of_a_vector(y):
    u = numpyro.sample("u", dist.Uniform(0, 1).expand([4]).to_event(1))
    heads = sum(int(u[i] < 0.3) for i in range(4))
    numpyro.sample("y", dist.Normal(heads, 1), obs=y)


def in_boxes_in_pyro(y):
    u = [pyro.sample(f"u{i}", pdist.Uniform(0.0, 1.0)) for i in range(4)]
    heads = sum(int(one < 0.3) for one in u)
    pyro.sample("y", pdist.Normal(float(heads), 1.0), obs=y)


def in_supports(y):
    """Supports that differ, of which the density tells nothing."""
    numpyro.sample("u0", dist.Uniform(0, 1))
    numpyro.sample("u1", dist.Uniform(0, 2))
    numpyro.sample("y", dist.Normal(numpyro.sample("m", dist.Normal(0, 1)), 1), obs=y)


@pytest.mark.parametrize("model", [in_boxes, in_boxes_of_a_vector, in_boxes_in_pyro])
def test_members_in_different_boxes_are_not_exchangeable(model):
    y = torch.tensor(2.0) if model is in_boxes_in_pyro else 2.0
    posterior = exact.fit(model, y, budget=400)
    assert len(posterior.paths) == 16
    for path in posterior.paths:
        share = path.prior_mass
        heads = round((np.log(share) - 4 * np.log(0.7)) / np.log(3 / 7))
        assert share == pytest.approx(0.3**heads * 0.7 ** (4 - heads))
        truth = np.log(share) + stats.norm.logpdf(2, heads, 1)
        assert path.log_evidence_error < 0.05
        assert path.log_evidence == pytest.approx(truth, abs=4.5 * path.log_evidence_error + 1e-6)


def test_members_with_different_supports_are_not_exchangeable():
    assert groups_of(in_supports, 1.0) == {}
