"""Posteriors in ArviZ: both generations take them, and find what can be found by hand."""

import importlib
import sys

import matplotlib as mpl
import numpy as np
import numpyro
import numpyro.distributions as dist
import pyro
import pyro.distributions as pdist
import pytest
import torch
from scipy import stats

import pathmix
from pathmix.errors import MissingExtraError

X = np.linspace(-1, 1, 20)
Y = 0.5 + 0.9 * X + np.random.default_rng(0).normal(size=20)
pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # ArviZ's own, of one chain and of missing values
    pytest.mark.usefixtures("drawn_nowhere"),
]


def numpyro_model(x, y):
    sloped = int(numpyro.sample("sloped", dist.Bernoulli(0.5)))
    mean = numpyro.sample("level", dist.Normal(0, 3))
    if sloped:
        mean = mean + numpyro.sample("slope", dist.Normal(0, 3)) * x
    numpyro.sample("y", dist.Normal(mean, 1), obs=y)


def pyro_model(x, y):
    sloped = pyro.sample("sloped", pdist.Bernoulli(0.5))
    mean = pyro.sample("level", pdist.Normal(0.0, 3.0))
    if sloped:
        mean = mean + pyro.sample("slope", pdist.Normal(0.0, 3.0)) * x
    with pyro.plate("n", len(y)):
        pyro.sample("y", pdist.Normal(mean, 1.0), obs=y)


MODELS = {"numpyro": (numpyro_model, X, Y), "pyro": (pyro_model, torch.tensor(X), torch.tensor(Y))}


@pytest.fixture(scope="module", params=MODELS)
def posterior(request):
    model, *data = MODELS[request.param]
    allocation = pathmix.SuccessiveHalving(2_000)
    return pathmix.SDVI(model, allocation=allocation, starts=1, progress=False).run(0, *data)


@pytest.fixture(params=["tree", "inference data"])
def generation(request, monkeypatch):
    """What there is of ArviZ: its summary and leave-one-out, and two of its plots."""
    if request.param == "tree":
        statistics, plots = map(importlib.import_module, ("arviz_stats", "arviz_plots"))
        return statistics.summary, statistics.loo, plots.plot_forest, plots.plot_ppc_dist
    monkeypatch.setitem(sys.modules, "arviz_base", None)
    arviz = importlib.import_module("arviz")
    return arviz.summary, arviz.loo, arviz.plot_forest, arviz.plot_ppc


@pytest.fixture
def drawn_nowhere():
    before = mpl.get_backend()
    mpl.use("agg")
    yield
    mpl.use(before)


def log_evidence(x, y):
    """Of both paths together: conjugate."""
    level = 9 * np.ones((len(y), len(y)))
    covariances = (level, level + 9 * np.outer(x, x))
    logs = [stats.multivariate_normal.logpdf(y, np.zeros(len(y)), c + np.eye(len(y))) for c in covariances]
    return np.logaddexp(*logs) + np.log(0.5)


def test_what_is_there(posterior, generation):
    found = posterior.to_arviz(0, 200)
    draws = posterior.sample(0, 200)
    of_draws, of_elements = {"chain": 1, "draw": 200}, {"chain": 1, "draw": 200, "y_dim_0": 20}
    assert dict(found["posterior"].sizes) == of_draws
    np.testing.assert_array_equal(found["posterior"]["slope"][0], draws["slope"])
    np.testing.assert_array_equal(np.isnan(found["posterior"]["slope"][0]), ~draws.present("slope"))
    np.testing.assert_array_equal(found["posterior"]["path"][0], draws.path)
    assert set(found["posterior"]["label"].values[0]) == {"sloped=0", "sloped=1"}
    np.testing.assert_allclose(found["observed_data"]["y"], Y, rtol=1e-6)
    for name in ("posterior_predictive", "log_likelihood"):
        assert dict(found[name].sizes) == of_elements
    mean = np.nan_to_num(draws["slope"])[:, None] * X + draws["level"][:, None]
    np.testing.assert_allclose(found["log_likelihood"]["y"][0], stats.norm.logpdf(Y, mean), rtol=1e-4)
    noise = found["posterior_predictive"]["y"].values[0] - mean
    assert noise.mean() == pytest.approx(0, abs=0.08) and noise.std() == pytest.approx(1, abs=0.05)
    weights = [path.weight for path in posterior.paths]
    np.testing.assert_allclose(found["sample_stats"]["path_weight"][0], np.array(weights)[draws.path])


def test_leave_one_out_is_what_it_should_be(posterior, generation):
    _, loo, _, _ = generation
    found = loo(posterior.to_arviz(0, 4_000))
    others = [np.arange(20) != i for i in range(20)]
    truth = sum(log_evidence(X, Y) - log_evidence(X[rest], Y[rest]) for rest in others)
    assert float(getattr(found, "elpd", getattr(found, "elpd_loo", None))) == pytest.approx(truth, abs=0.1)


def test_summaries_and_plots(posterior, generation):
    summary, _, plot_forest, plot_ppc = generation
    found = posterior.to_arviz(0, 200)
    table = summary(found)
    assert {"sloped", "level", "slope"} <= set(table.index)
    assert float(table.loc["level", "mean"]) == pytest.approx(posterior.marginal("level").mean(), abs=0.1)
    plot_forest(found)
    plot_ppc(found)


def test_one_path_is_dense(posterior, generation):
    summary, *_ = generation
    found = posterior.to_arviz(0, 200, path="sloped=1")
    assert not np.isnan(found["posterior"]["slope"]).any()
    assert np.isfinite(float(summary(found).loc["slope", "mean"]))
    assert set(found["posterior"]["label"].values[0]) == {"sloped=1"}


def test_names_of_dimensions_and_truth_values(generation):
    def model(y):
        x = numpyro.sample("draw", dist.Normal(0, 1))
        numpyro.deterministic("high", x > 0)
        numpyro.sample("y", dist.Normal(x, 1), obs=y)

    fit = pathmix.SDVI(model, allocation=pathmix.Uniform(100), starts=1, progress=False).run(0, 0.5)
    assert {"draw_", "high"} <= set(generation[0](fit.to_arviz(0, 100)).index)


def test_without_the_model_there_are_draws(posterior, generation, tmp_path):
    posterior.save(tmp_path / "fit.pathmix")
    found = pathmix.load(tmp_path / "fit.pathmix").to_arviz(0, 50)
    assert "posterior" in found and "log_likelihood" not in found


def test_without_arviz(posterior, monkeypatch):
    for name in ("arviz_base", "arviz"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match=r"pip install 'pathmix\[arviz\]'"):
        posterior.to_arviz(0, 10)
