"""Evidences with defaults: exact answers, where guides alone are wrong."""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pyro
import pyro.distributions as pdist
import pytest
import torch
from scipy import integrate, stats

import pathmix
from pathmix.errors import OptionError, PathmixError
from pathmix.posterior.status import Status
from tests import exact
from tests.zoo import programs

GENERATOR = np.random.default_rng(0)
BASE = GENERATOR.normal(size=40)
X = BASE[:, None] + 0.05 * GENERATOR.normal(size=(40, 4))  # four columns that are nearly one
COLLINEAR = 0.3 * X.sum(axis=1) + GENERATOR.normal(size=40)


def all_or_one(x, y):
    if numpyro.sample("all", dist.Bernoulli(0.5)):
        weight = numpyro.sample("weight", dist.Normal(0, 1).expand([4]).to_event(1))
        mean = x @ weight
    else:
        mean = x[:, 0] * numpyro.sample("only", dist.Normal(0, 1))
    numpyro.sample("y", dist.Normal(mean, 1), obs=y)


def all_or_one_in_pyro(x, y):
    if pyro.sample("all", pdist.Bernoulli(0.5)):
        mean = x @ pyro.sample("weight", pdist.Normal(torch.zeros(4), 1).to_event(1))
    else:
        mean = x[:, 0] * pyro.sample("only", pdist.Normal(0, 1))
    with pyro.plate("rows", len(y)):
        pyro.sample("y", pdist.Normal(mean, 1), obs=y)


def collinear_truth():
    logs = [
        stats.multivariate_normal.logpdf(COLLINEAR, np.zeros(40), design @ design.T + np.eye(40))
        for design in (X[:, :1], X)
    ]
    return np.log(0.5) + np.array(logs)


@pytest.mark.parametrize("guide", ["auto", "meanfield"])
@pytest.mark.parametrize("in_pyro", [False, True], ids=["numpyro", "pyro"])
def test_collinear_columns(guide, in_pyro):
    """A mean-field guide is nats short of the evidence; what is found from it on is not."""
    data = (torch.tensor(X), torch.tensor(COLLINEAR)) if in_pyro else (X, COLLINEAR)
    model = all_or_one_in_pyro if in_pyro else all_or_one
    posterior = exact.fit(model, *data, budget=6_000, guide=guide)
    truth = collinear_truth()
    for path in posterior.paths:
        log_z = truth[path.pinned["all"]]
        assert path.log_evidence == pytest.approx(log_z, abs=4.5 * path.log_evidence_error)
        assert path.evidence_method == "importance" and path.khat < 0.7 and path.status is Status.OK
    share = exact.softmax(truth)[1]
    error = posterior.weight_errors["all=1"]
    assert posterior.weights["all=1"] == pytest.approx(share, abs=4.5 * error) and error < 0.01
    assert posterior.log_evidence == pytest.approx(
        exact.logsumexp(truth), abs=4.5 * posterior.log_evidence_error
    )
    assert posterior.verdict.ok


def test_draws_are_of_the_posterior_where_the_guide_is_not():
    posterior = exact.fit(all_or_one, X, COLLINEAR, budget=6_000, guide="meanfield")
    drawn = posterior.marginal("weight", count=6_000)
    covariance = np.linalg.inv(X.T @ X + np.eye(4))
    np.testing.assert_allclose(np.cov(drawn.T), covariance, atol=0.12)
    assert covariance[0, 1] < -0.2


def square_or_line(y):
    """On one path two modes, of which a guide has one."""
    if numpyro.sample("square", dist.Bernoulli(0.5)):
        mean = numpyro.sample("z", dist.Normal(0, 3)) ** 2
    else:
        mean = numpyro.sample("m", dist.Normal(0, 3))
    numpyro.sample("y", dist.Normal(mean, 0.5), obs=y)


def square_truth(y):
    def density(z):
        return stats.norm.pdf(z, 0, 3) * stats.norm.pdf(y, z * z, 0.5)

    square = integrate.quad(density, -12, 12, points=[-np.sqrt(y), np.sqrt(y)])[0]
    return np.log(0.5) + np.array([stats.norm.logpdf(y, 0, np.sqrt(9.25)), np.log(square)])


def test_two_modes():
    posterior = exact.fit(square_or_line, 4.0, budget=4_000)
    for path in posterior.paths:
        log_z = square_truth(4.0)[path.pinned["square"]]
        assert path.log_evidence == pytest.approx(log_z, abs=4.5 * path.log_evidence_error)
    assert posterior.verdict.ok
    z = posterior.marginal("z", count=3_000)
    assert np.mean(z > 0) == pytest.approx(0.5, abs=0.06)
    # Away from the guide's mode, too, the density is that of the posterior.
    right, left = (posterior.log_prob({"square": 1, "z": z}) for z in (2.0, -2.0))
    assert right == pytest.approx(left)


def test_a_hard_path_says_that_it_is():
    """A funnel without data in ten dimensions: its neck is thinner than anything that is fitted to it."""

    def model():
        if numpyro.sample("deep", dist.Bernoulli(0.5)):
            v = numpyro.sample("v", dist.Normal(0, 5))
            numpyro.sample("z", dist.Normal(0, jnp.exp(v / 2)).expand([10]).to_event(1))
        else:
            numpyro.sample("m", dist.Normal(0, 1))
        numpyro.factor("nothing", 0.0)

    posterior = exact.fit(model, budget=4_000, smc_evaluations=0)
    deep = next(path for path in posterior.paths if path.pinned["deep"])
    error = abs(deep.log_evidence - np.log(0.5))
    assert error < 4.5 * deep.log_evidence_error or (deep.doubts and not posterior.verdict.ok)
    assert deep.status is (Status.ROUGH if deep.doubts else Status.OK)


def test_general_regions():
    posterior = exact.fit(programs.sum_branch, 1.0, budget=10_000)
    for path in posterior.paths:
        log_z = exact.sum_branch(1.0)[path.addresses[-1]]
        assert path.log_evidence == pytest.approx(log_z, abs=4.5 * path.log_evidence_error)


def test_paths_without_free_sites_are_exact():
    def model(y):
        k = numpyro.sample("k", dist.Categorical(probs=jnp.array([0.2, 0.8])))
        numpyro.sample("y", dist.Normal(k, 1.0), obs=y)

    posterior = exact.fit(model, 0.3)
    assert {path.evidence_method for path in posterior.paths} == {"exact"}
    assert max(posterior.weight_errors.values()) < 1e-12 and posterior.log_evidence_error < 1e-12
    assert posterior.verdict.ok


def test_paths_that_were_hardly_trained_have_their_evidences():
    """Sixteen subsets, twelve of which are set aside after a few steps."""
    generator = np.random.default_rng(1)
    x = generator.normal(size=(30, 4))
    y = x @ np.array([0.8, 0.0, -0.3, 0.0]) + generator.normal(size=30)

    def model(x, y):
        mean = jnp.zeros(len(y))
        for j in range(4):
            if numpyro.sample(f"in{j}", dist.Bernoulli(0.5)):
                mean = mean + x[:, j] * numpyro.sample(f"b{j}", dist.Normal(0, 1))
        numpyro.sample("y", dist.Normal(mean, 1), obs=y)

    posterior = exact.fit(model, x, y, allocation=pathmix.SuccessiveHalving(budget=400, keep=4))
    logs = {}
    for chosen in np.ndindex(2, 2, 2, 2):
        part = x[:, np.array(chosen, bool)]
        logs[chosen] = stats.multivariate_normal.logpdf(y, np.zeros(30), part @ part.T + np.eye(30))
    truth = dict(zip(logs, exact.softmax(list(logs.values())), strict=True))
    found = {tuple(path.pinned[f"in{j}"] for j in range(4)): path.weight for path in posterior.paths}
    distance = sum(abs(found.get(chosen, 0.0) - share) for chosen, share in truth.items()) / 2
    assert distance < 0.02 and posterior.verdict.ok


def test_weights_can_be_made_again():
    posterior = exact.fit(programs.two_branches, 2.0, budget=2_000)
    paper = posterior.reweight("elbo")
    again = paper.reweight("evidence")
    assert again.weights == pytest.approx(posterior.weights) and again.verdict.ok
    assert sum(paper.weights.values()) == pytest.approx(1) and not paper.verdict.ok
    shares = exact.softmax([path.elbo for path in paper.paths])
    assert list(paper.weights.values()) == pytest.approx(list(shares))
    with pytest.raises(OptionError, match="weighting"):
        posterior.reweight("likelihood")
    chains = pathmix.DCC(programs.two_branches, iterations=20, progress=False).run(0, 2.0)
    with pytest.raises(PathmixError, match="no ELBOs"):
        chains.reweight("elbo")


def test_evidences_that_nobody_looked_for_are_never_ok():
    posterior = exact.fit(programs.two_branches, 2.0, budget=2_000, weights="elbo").reweight("evidence")
    assert not posterior.verdict.ok and "guides alone" in str(posterior.verdict)
    assert posterior.weighting == "evidence"


def test_threads_do_not_change_evidences():
    one, two = (exact.fit(square_or_line, 4.0, budget=2_000, threads=threads) for threads in (1, 2))
    assert one.weights == two.weights and one.log_evidence_error == two.log_evidence_error


def test_single_precision():
    posterior = exact.fit(all_or_one, X, COLLINEAR, budget=6_000, precision="float32")
    for path in posterior.paths:
        truth = collinear_truth()[path.pinned["all"]]
        assert path.log_evidence == pytest.approx(truth, abs=4.5 * path.log_evidence_error)
        assert 1e-6 < path.log_evidence_error < 0.02


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("weights", "softmax"),
        ("evidence_draws", 0),
        ("smc_evaluations", -1),
        ("symmetry", "yes"),
        ("initial", "zero"),
    ],
)
def test_wrong_options(option, value):
    with pytest.raises(OptionError, match=option):
        pathmix.SDVI(programs.one_path, **{option: value})


def test_a_start_at_the_mean():
    """With no training, the guide is where the paper's authors start: the prior's mean, with scale one."""
    allocation = pathmix.Uniform(budget=1)
    posterior = exact.fit(
        all_or_one, X, COLLINEAR, allocation=allocation, initial="mean", starts=1, weights="elbo"
    )
    for path in posterior.paths:
        params = path.guide.params
        np.testing.assert_allclose(np.exp(params.log_diagonal), 1.0, atol=1e-6)
        np.testing.assert_allclose(params.loc, 0.0, atol=0.2)
