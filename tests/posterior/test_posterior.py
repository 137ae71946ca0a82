"""What a user does with the result."""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy import stats

import pathmix
from pathmix.errors import ValueLookupError
from pathmix.posterior.verdict import with_error
from pathmix.posterior.weights import global_elbo, path_weights
from tests import exact
from tests.zoo import programs, pyro_programs


@pytest.fixture(scope="module")
def two():
    return exact.fit(programs.two_branches, 2.0, guide="meanfield", starts=1)


@pytest.fixture(scope="module")
def general():
    return exact.fit(programs.sum_branch, 1.0, guide="fullrank")


def test_the_table(two):
    lines = str(two).splitlines()
    reached = with_error(two.log_evidence, two.log_evidence_error)
    assert lines[0].startswith(f"Posterior over 2 paths, log evidence {reached}") and "±" in reached
    assert lines[2].split() == ["path", "weight", "log", "Z", "ELBO", "k-hat", "steps", "status"]
    assert lines[4].startswith("x >= 0  0.91") and lines[4].count("±") == 2
    assert lines[-1].startswith("Verdict: The weights are right within their errors. x >= 0 comes first")
    assert repr(two) == str(two)
    paper = str(two.reweight("elbo")).splitlines()
    assert paper[0].startswith("Posterior over 2 paths, global ELBO -2.4")
    assert paper[-1].startswith("Verdict: The weights are not settled.") and "ELBOs" in paper[-1]


def test_paths_carry_what_they_promise(two):
    best = two.paths[0]
    assert best.label == "x >= 0" and best.addresses == ("x", "z2") and best.pinned == {}
    assert len(best.history) == best.steps < 10_000  # it settled before
    assert best.elbo == pytest.approx(np.nanmean(best.history[-500:]), abs=0.1)
    assert isinstance(best.guide.family, pathmix.MeanField) and best.guide.params.loc.shape == (2,)
    assert best.prior_mass == pytest.approx(0.5, abs=0.08)
    assert best.gradient == "reparam" and best.region.kind == "box"
    assert two.likelihood_evaluations == sum(p.likelihood_evaluations for p in two.paths)
    assert best.likelihood_evaluations >= best.steps * 10 + 1_000
    assert np.isfinite(two.discovery.log_d_min) and two.discovery.dropped_mass == 0
    assert two.elbo == pytest.approx(exact.logsumexp([p.elbo for p in two.paths]))


def test_draws(two):
    draws = two.sample(1, 2_000)
    assert len(draws.path) == 2_000 and set(draws) == {"x", "z1", "z2"}
    np.testing.assert_array_equal(~draws.present("z1"), draws.path == 0)
    np.testing.assert_array_equal(~draws.present("z2"), draws.path == 1)
    assert draws.present("x").all()
    assert np.all((draws["x"] >= 0) == (draws.path == 0))
    share = np.mean(draws.path == 0)
    assert share == pytest.approx(two.weights["x >= 0"], abs=4.5 * np.sqrt(0.09 / 2_000))
    # z2 given y = 2 is normal with mean 2.8 and variance 0.8.
    assert np.nanmean(draws["z2"]) == pytest.approx(2.8, abs=0.1)
    assert np.nanvar(draws["z2"]) == pytest.approx(0.8, rel=0.15)
    again = two.sample(1, 2_000)
    np.testing.assert_array_equal(draws["x"], again["x"])
    with pytest.raises(KeyError, match="no site called 'w'"):
        draws["w"]
    with pytest.raises(pathmix.PathmixError, match="at least 1"):
        two.sample(0, 0)


def test_draws_of_a_general_region_are_inside(general):
    draws = general.sample(0, 1_000)
    high = np.array([path.addresses[-1] == "high" for path in general.paths])[draws.path]
    np.testing.assert_array_equal(draws["a"] + draws["b"] > 1, high)


def test_shapes_that_depend_on_the_path():
    def model(y):
        k = int(numpyro.sample("k", dist.Bernoulli(0.5))) + 2
        w = numpyro.sample("w", dist.Dirichlet(jnp.ones(k)))
        numpyro.deterministic("largest", w.max())
        numpyro.sample("y", dist.Normal(w[0], 1), obs=y)

    draws = exact.fit(model, 0.5, budget=500, weights="elbo").sample(0, 100)
    assert draws["w"].shape == (100, 3)
    short = draws["k"] == 0
    assert np.isnan(draws["w"][short, 2]).all() and not np.isnan(draws["w"][~short]).any()
    np.testing.assert_allclose(np.nansum(draws["w"], axis=1), 1.0)
    np.testing.assert_allclose(draws["largest"], np.nanmax(draws["w"], axis=1))


def test_predictions(two):
    predicted = two.predict(2, 4_000, None)
    assert set(predicted) == {"y"} and predicted["y"].shape == (4_000,)
    # Mixture of N(2.8, 0.8 + 4) and N(-2, 0.8 + 4).
    mean = two.weights["x >= 0"] * 2.8 + two.weights["x < 0"] * -2.0
    assert predicted["y"].mean() == pytest.approx(mean, abs=0.2)
    assert two.predict(2, 10, jnp.zeros(3))["y"].shape == (10, 3)


def test_predictions_with_new_arguments():
    def model(x, y=None):
        curved = numpyro.sample("curved", dist.Bernoulli(0.5))
        slope = numpyro.sample("slope", dist.Normal(0, 1))
        mean = slope * x
        if curved:
            mean = mean + numpyro.sample("bend", dist.Normal(0, 1)) * x**2
        with numpyro.plate("data", len(x)):
            numpyro.sample("y", dist.Normal(mean, 0.1), obs=y)

    x = jnp.linspace(-1, 1, 20)
    posterior = exact.fit(model, x, 0.7 * x, budget=4_000)
    new = jnp.array([2.0, 3.0, 4.0])
    predicted = posterior.predict(0, 500, new)
    assert predicted["y"].shape == (500, 3)
    straight = predicted["y"][predicted.path == 0]
    np.testing.assert_allclose(straight.mean(axis=0), [1.4, 2.1, 2.8], atol=0.1)


def test_new_arguments_may_lead_elsewhere():
    def model(limit):
        x = numpyro.sample("x", dist.Normal(0, 1))
        if x < limit:
            numpyro.sample("low", dist.Normal(-10, 0.1), obs=-10.0)
        else:
            numpyro.sample("high", dist.Normal(10, 0.1), obs=10.0)

    posterior = exact.fit(model, 100.0, budget=200, weights="elbo")
    predicted = posterior.predict(0, 400, 0.0)
    assert np.all(predicted.present("low") != predicted.present("high"))
    assert predicted.present("low").mean() == pytest.approx(0.5, abs=0.12)


def test_log_prob_of_the_exact_posterior():
    posterior = exact.fit(programs.one_path, 0.5)
    expected = stats.norm.logpdf(0.1, 0.25, np.sqrt(0.5))
    assert posterior.log_prob({"z": 0.1}) == pytest.approx(expected, abs=0.02)


def test_log_prob_outside_the_support():
    def model(y):
        s = numpyro.sample("s", dist.HalfNormal(1))
        numpyro.sample("y", dist.Normal(0, s), obs=y)

    posterior = exact.fit(model, 0.5, budget=200, weights="elbo")
    assert posterior.log_prob({"s": -1.0}) == -np.inf
    assert np.isfinite(posterior.log_prob({"s": 1}))
    with pytest.raises(ValueLookupError, match=r"'s' at test_posterior.py:\d+ has shape \(\)"):
        posterior.log_prob({"s": np.ones(3)})


def test_log_prob_finds_the_path(two):
    expected = np.log(two.weights["x < 0"]) + stats.norm.logpdf(-1.8, -2, np.sqrt(0.8))
    expected += stats.halfnorm.logpdf(0.5)
    assert two.log_prob({"x": -0.5, "z1": -1.8}) == pytest.approx(expected, abs=0.15)
    with pytest.raises(ValueLookupError, match="lack the site 'z1'"):
        two.log_prob({"x": -0.5, "z2": 0.0})
    with pytest.raises(ValueLookupError, match="does not draw 'z2'"):
        two.log_prob({"x": -0.5, "z1": 0.0, "z2": 0.0})


def test_log_prob_is_normalised(general):
    """Importance weights of draws against the density of the mixture average to the prior mass."""
    draws = general.sample(3, 400)
    logs = []
    for row in range(400):
        values = {name: draws[name][row] for name in draws if draws.present(name)[row]}
        prior = stats.norm.logpdf(values["a"]) + stats.norm.logpdf(values["b"])
        z = values.get("high", values.get("low"))
        prior += stats.norm.logpdf(z, 2 if "high" in values else -1)
        likelihood = stats.norm.logpdf(1.0, z + values["a"])
        logs.append(prior + likelihood - general.log_prob(values))
    # E_q[gamma / q] = Z over the support of q.
    truth = exact.logsumexp(list(exact.sum_branch(1.0).values()))
    assert exact.logsumexp(logs) - np.log(400) == pytest.approx(truth, abs=0.1)


def test_log_prob_of_an_unknown_path_is_zero_mass():
    posterior = exact.fit(
        programs.poisson_mixture, programs.MIXTURE_Y, budget=200, discovery=pathmix.PriorDiscovery(50)
    )
    values = {"num_clusters": 20} | {f"mu_{k}": 0.0 for k in range(21)}
    assert posterior.log_prob(values) == -np.inf


def test_parameters_are_kept_and_noted():
    def model(y):
        scale = numpyro.param("scale", 2.0)
        z = numpyro.sample("z", dist.Normal(0, scale))
        numpyro.sample("y", dist.Normal(z, 1), obs=y)

    posterior = exact.fit(model, 0.5)
    assert posterior.elbo == pytest.approx(stats.norm.logpdf(0.5, 0, np.sqrt(5)), abs=0.01)
    assert "initial values: scale" in str(posterior)


@pytest.mark.parametrize("model", [programs.two_branches, pyro_programs.two_branches])
def test_log_likelihood_of_new_data(model):
    posterior = exact.fit(model, 2.0, budget=500, weights="elbo")
    count = 150  # more than one batch of runs
    draws = posterior.sample(3, count)
    z = np.where(draws.present("z1"), draws["z1"], draws["z2"])
    found = posterior.log_likelihood(3, count, 1.5)
    np.testing.assert_allclose(found, stats.norm.logpdf(1.5, z, 2), rtol=1e-9)


def test_log_likelihood_with_arguments_that_lead_elsewhere():
    def model(y, limit):
        x = numpyro.sample("x", dist.Normal(0, 1))
        shift = 5.0 if x < limit else -5.0
        numpyro.sample("y", dist.Normal(shift, 1), obs=y)

    posterior = exact.fit(model, 0.0, 0.0, budget=200, weights="elbo")
    x = posterior.sample(0, 40)["x"]
    found = posterior.log_likelihood(0, 40, 1.0, 0.5)
    np.testing.assert_allclose(found, stats.norm.logpdf(1.0, np.where(x < 0.5, 5, -5), 1), rtol=1e-9)


def test_the_elbo_of_a_mixture_with_any_weights():
    elbos = np.array([-1.0, -2.0, -np.inf])
    best = path_weights(elbos)
    assert global_elbo(elbos, best) == pytest.approx(exact.logsumexp(elbos))
    assert global_elbo(elbos, [0.5, 0.5, 0.0]) == pytest.approx(-1.5 + np.log(2))
    assert global_elbo(elbos, [0.0, 0.0, 0.0]) == -np.inf
