"""Questions about structure, against sums that can be done by hand."""

import math
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pyro
import pyro.distributions as pdist
import pytest
import torch
from scipy import stats

import pathmix
from pathmix import errors

COUNTS = (0.2, 0.5, 0.3)
Y = 5.0


def numpyro_model(y, slope=1.0):
    k = int(numpyro.sample("k", dist.Categorical(np.array(COUNTS))))
    x = numpyro.sample("x", dist.Normal(0, 1))
    mean = x
    for i in range(k):
        mean = mean + numpyro.sample(f"b_{i}", dist.Normal(3, 1))
    numpyro.deterministic("mean", slope * mean)
    numpyro.sample("y", dist.Normal(slope * mean, 1), obs=y)


def pyro_model(y, slope=1.0):
    k = int(pyro.sample("k", pdist.Categorical(torch.tensor(COUNTS))))
    x = pyro.sample("x", pdist.Normal(0.0, 1.0))
    mean = x
    for i in range(k):
        mean = mean + pyro.sample(f"b_{i}", pdist.Normal(3.0, 1.0))
    pyro.deterministic("mean", slope * mean)
    pyro.sample("y", pdist.Normal(slope * mean, 1.0), obs=y)


MODELS = {"numpyro": (numpyro_model, Y), "pyro": (pyro_model, torch.tensor(Y))}


@pytest.fixture(scope="module", params=MODELS)
def posterior(request):
    model, y = MODELS[request.param]
    allocation = pathmix.SuccessiveHalving(6_000)
    return pathmix.SDVI(model, allocation=allocation, starts=1, progress=False).run(0, y)


def weights():
    """Of each number of terms: conjugate, with variance k + 1 and noise 1."""
    joint = [p * stats.norm.pdf(Y, 3 * k, math.sqrt(k + 2)) for k, p in enumerate(COUNTS)]
    return np.array(joint) / sum(joint)


def test_what_exists(posterior):
    assert posterior.exists("x") == pytest.approx(1.0)
    assert posterior.exists("b_0") == pytest.approx(weights()[1:].sum(), abs=1e-3)
    assert posterior.exists("b_1") == pytest.approx(weights()[2], abs=1e-3)
    with pytest.warns(errors.PathmixWarning, match="has a site called 'b_7'; there are 'b_0', 'b_1', "):
        assert posterior.exists("b_7") == 0.0
    assert posterior.exists("mean") == pytest.approx(1.0) and posterior.exists("y") == pytest.approx(1.0)


def test_the_distribution_of_a_discrete_site(posterior):
    found = posterior.distribution("k")
    assert list(found) == [0, 1, 2]
    np.testing.assert_allclose(list(found.values()), weights(), atol=1e-3)


def test_a_marginal_is_given_that_the_site_exists(posterior):
    share = weights()[1:] / weights()[1:].sum()
    means = [3 + (Y - 3 * k) / (k + 2) for k in (1, 2)]
    found = posterior.marginal("b_0", count=20_000)
    assert found.mean() == pytest.approx(share @ means, abs=0.04)
    assert len(found) < 20_000


def test_the_probability_of_an_event(posterior):
    at_least_one = posterior.probability(lambda run: "b_0" in run)
    assert at_least_one == pytest.approx(weights()[1:].sum(), abs=0.03)
    by_path = posterior.probability(lambda run: run.path == "k=2" and run["k"] == 2)
    assert by_path == pytest.approx(weights()[2], abs=0.03)
    with pytest.raises(KeyError, match="this draw has no site called 'b_1'; it has: k, x"):
        posterior.probability(lambda run: run["b_1"] > 0)


def test_groups_of_paths(posterior):
    groups = posterior.group(lambda path: "some" if "b_0" in path.addresses else "none")
    assert groups["some"].weight == pytest.approx(weights()[1:].sum(), abs=1e-3)
    assert len(groups["some"].paths) == 2
    assert sum(group.weight for group in groups.values()) == pytest.approx(1)
    assert groups["some"].error == pytest.approx(groups["none"].error)


def with_errors(posterior, logs):
    """With evidences that are known to a tenth of a nat."""
    paths = [
        replace(path, log_evidence=log, log_evidence_error=0.1)
        for path, log in zip(posterior.paths, logs, strict=True)
    ]
    weights = np.exp(logs) / np.exp(logs).sum()
    paths = [replace(path, weight=float(weight)) for path, weight in zip(paths, weights, strict=True)]
    return replace(posterior, paths=tuple(paths))


def test_errors_of_groups(posterior):
    """Of a and b against c the error is w (1 - w) times that of the log of their ratio."""
    logs = np.log([0.5, 0.3, 0.2])
    found = with_errors(posterior, logs)
    first, *others = (path.label for path in found.paths)
    errors = {label: group.error for label, group in found.group(lambda path: path.label).items()}
    assert errors == pytest.approx(found.weight_errors, rel=1e-9)
    spread = np.hypot(0.1, 0.1 * np.hypot(0.3, 0.2) / 0.5)
    two = found.group(lambda path: path.label == first)
    assert two[False].error == pytest.approx(0.25 * spread, rel=0.1) == two[True].error
    # Twins err together: more than two paths that do not.
    twins = with_errors(posterior, np.log([0.5, 0.25, 0.25])).group(lambda path: path.label in others)
    assert twins[True].error == pytest.approx(0.25 * np.hypot(0.1, 0.1), rel=0.1)


def test_errors_of_weights_are_in_those_of_means(posterior):
    known, vague = (
        posterior.summary(count=20_000),
        with_errors(posterior, np.log([0.5, 0.3, 0.2])).summary(count=20_000),
    )
    assert vague.loc["k", "mean_error"] > 2 * known.loc["k", "mean_error"]
    positions = [path.pinned["k"] for path in posterior.paths]
    simulated = np.random.default_rng(0).normal(np.log([0.5, 0.3, 0.2]), 0.1, (20_000, 3))
    means = np.exp(simulated) @ positions / np.exp(simulated).sum(axis=1)
    sampling = vague.loc["k", "sd"] / np.sqrt(20_000)
    assert vague.loc["k", "mean_error"] == pytest.approx(np.hypot(means.std(), sampling), rel=0.1)


def test_a_summary(posterior):
    found = posterior.summary(count=20_000)
    x = found.loc["x"]
    truth = weights() @ [(Y - 3 * k) / (k + 2) for k in range(3)]
    assert x["exists"] == pytest.approx(1) and x["mean"] == pytest.approx(truth, abs=5 * x["mean_error"])
    assert found.loc["b_1", "exists"] == pytest.approx(weights()[2], abs=1e-3)
    assert list(found.columns[-3:]) == ["5%", "50%", "95%"]


def test_a_table(posterior):
    table = posterior.table()
    assert list(table.index) == [path.label for path in posterior.paths]
    assert table["weight"].sum() == pytest.approx(1) and set(table["status"]) <= {"ok", "rough"}
    np.testing.assert_allclose(table["weight_error"], list(posterior.weight_errors.values()), rtol=1e-9)


def test_a_path_by_its_label(posterior):
    assert posterior.path("k=2").pinned["k"] == 2 and posterior.path(0) is posterior.paths[0]
    with pytest.raises(errors.ValueLookupError, match="No path is called 'k=9'; there are 'k="):
        posterior.path("k=9")


def test_draws_of_one_path(posterior):
    draws = posterior.sample(0, 500, path="k=0")
    assert set(draws["k"]) == {0} and "b_0" not in draws
    assert draws["x"].mean() == pytest.approx(Y / 2, abs=0.15)


def test_names_that_are_not_there(posterior):
    said = "No path has a site called 'z'; there are 'k', 'x'"
    for ask in (posterior.distribution, posterior.marginal):
        with pytest.raises(errors.ValueLookupError, match=said):
            ask("z")
    with pytest.raises(errors.PathmixError, match="'x' is not one discrete number"):
        posterior.distribution("x")


def test_replicates_of_the_data(posterior):
    """Without arguments, with the draws that `sample` gives."""
    replicated = posterior.predict(3, 2_000, with_latents=True)
    latent = posterior.sample(3, 2_000)
    for name in ("k", "x", "b_0"):
        np.testing.assert_array_equal(replicated[name], latent[name])
    np.testing.assert_allclose(replicated["mean"], latent["mean"], rtol=1e-5)
    noise = replicated["y"] - replicated["mean"]
    assert noise.mean() == pytest.approx(0, abs=0.1) and noise.std() == pytest.approx(1, abs=0.08)


def test_deterministic_sites_at_new_arguments(posterior):
    predicted, latent = posterior.predict(3, 50, Y, slope=2.0), posterior.sample(3, 50)
    np.testing.assert_allclose(predicted["mean"], 2 * latent["mean"], rtol=1e-5)
    assert "x" not in predicted


def test_wrong_arguments_show_the_signature(posterior):
    for ask in (posterior.predict, posterior.log_likelihood):
        with pytest.raises(errors.ArgumentsError, match=r"'speed'.*_model\(y, slope=1\.0\)"):
            ask(0, 5, Y, speed=2.0)


def test_many_densities_at_once(posterior):
    draws = posterior.sample(0, 20)
    found = posterior.log_prob(draws)
    one = {name: draws[name][4] for name in draws if draws.present(name)[4] and name != "mean"}
    assert found.shape == (20,) and found[4] == pytest.approx(posterior.log_prob(one))
    assert posterior.log_prob([one, one]).tolist() == pytest.approx([found[4]] * 2)


def fitted(model, *args, **options):
    allocation = pathmix.Uniform(200)
    return pathmix.SDVI(model, allocation=allocation, starts=1, progress=False, **options).run(0, *args)


def test_what_no_draw_has_seen_exists_all_the_same():
    def many(y):
        for i in range(6):
            if numpyro.sample(f"b{i}", dist.Bernoulli(0.5)):
                pass
        numpyro.sample("y", dist.Normal(numpyro.sample("x", dist.Normal(0, 1)), 1), obs=y)

    found = fitted(many, 1.0).summary(count=20)
    assert found.loc["x", "exists"] == pytest.approx(1) and found.loc["b3", "exists"] == pytest.approx(1)


def test_values_that_are_not_numbers_are_not_left_out():
    def model(y):
        x = numpyro.sample("x", dist.Normal(0, 1))
        numpyro.deterministic("log", jnp.log(x))
        numpyro.sample("y", dist.Normal(x, 1), obs=y)

    posterior = fitted(model, 0.0)
    assert np.isnan(posterior.summary().loc["log", "mean"]) and np.isnan(posterior.marginal("log")).any()


def test_numbers_and_tuples_of_them():
    def model(y):
        several = numpyro.sample("several", dist.Bernoulli(0.5))
        k = numpyro.sample("k", dist.Bernoulli(0.3).expand([2] if several else []))
        mean = 0.0
        for value in k.reshape(-1):
            if value:
                mean = mean + 1
        numpyro.sample("y", dist.Normal(mean, 1), obs=y)

    assert list(fitted(model, 1.0).distribution("k")) == [0, 1, (0, 0), (0, 1), (1, 0), (1, 1)]


def impossible(y):
    b = numpyro.sample("b", dist.Categorical(np.ones(3) / 3))
    x = numpyro.sample("x", dist.Normal(0, 1))
    if b == 2:
        numpyro.sample("y", dist.Exponential(1.0).expand([2]), obs=y)
    else:
        numpyro.sample("y", dist.Normal(x + 60.0 * int(b), 0.1), obs=y)


def test_paths_that_have_no_draws_and_those_that_are_never_drawn():
    posterior = fitted(impossible, np.array([-1.0, 0.3]))
    assert posterior.table().loc["b=2", "weight_error"] == 0.0
    assert np.isnan(posterior.reweight("stacking").table()["weight_error"]).any()
    with pytest.raises(errors.PathmixError, match="The path 'b=2' has no draws: "):
        posterior.sample(0, 5, path="b=2")
    with pytest.raises(errors.PathmixError, match="The path 'b=2' has no draws: "):
        posterior.to_arviz(0, 5, path="b=2")
    mean, deviation = -100 * 120.7 / 201, 201**-0.5
    draws = posterior.sample(0, 400, path="b=1")["x"]  # though the path is never drawn
    assert np.mean(draws) == pytest.approx(mean, abs=0.5 * deviation)
    assert np.std(draws) == pytest.approx(deviation, rel=0.3)


def test_names_that_are_numbered_already():
    def name(path):
        return ["a", "a", "a #1"][path.pinned["b"]]

    weights = fitted(impossible, np.array([1.0, 0.3]), label=name).weights
    assert len(weights) == 3 and sum(weights.values()) == pytest.approx(1)
    with pytest.raises(errors.OptionError, match="label must be a function"):
        pathmix.SDVI(impossible, label="b")


def test_shapes_that_depend_on_the_path():
    """Densities, data and likelihoods are those of the path, not of what is filled up."""

    def model(y):
        k = int(numpyro.sample("k", dist.Bernoulli(0.5))) + 2
        w = numpyro.sample("w", dist.Normal(0, 1).expand([k]).to_event(1))
        numpyro.sample("y", dist.Normal(w.sum(), 1), obs=y)

    posterior = pathmix.SDVI(model, allocation=pathmix.Uniform(500), starts=1, progress=False).run(0, Y)
    draws = posterior.sample(0, 30)
    found = posterior.log_prob(draws)
    for path, own in ((path, draws.where_path(path.label)) for path in posterior.paths):
        assert not np.isnan(own["w"]).any() and own["w"].shape[1] == path.pinned["k"] + 2
    assert np.isfinite(found).all()
    assert posterior._data(draws)["y"] == pytest.approx(Y)
    totals = np.nansum(draws["w"], axis=1)
    np.testing.assert_allclose(posterior.log_likelihood(0, 30), stats.norm.logpdf(Y, totals, 1), rtol=1e-5)
    assert posterior.probability(lambda run: len(run["w"]) == 3) == pytest.approx(
        posterior.distribution("k")[1], abs=0.04
    )


def test_log_likelihoods_of_the_elements(posterior):
    """The data of the run, which are one number."""
    together, pointwise = posterior.log_likelihood(0, 50), posterior.log_likelihood(0, 50, pointwise=True)
    latent = posterior.sample(0, 50)
    np.testing.assert_allclose(together, stats.norm.logpdf(Y, latent["mean"], 1), rtol=1e-5)
    np.testing.assert_allclose(np.ravel(pointwise["y"]), together, rtol=1e-5)
