"""Predictions are made at the draws: what a path infers, it keeps; what it observes is simulated."""

from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import numpyro
import pyro
import pytest
import torch
from numpyro.contrib.control_flow import cond, scan
from numpyro.distributions import Bernoulli, Gamma, Normal

import pathmix
from pathmix.errors import ProgramError, ValueLookupError
from tests import exact

NUMPYRO = SimpleNamespace(
    sample=numpyro.sample,
    plate=numpyro.plate,
    Normal=Normal,
    Bernoulli=Bernoulli,
    Gamma=Gamma,
    array=jnp.asarray,
    name="numpyro",
)
PYRO = SimpleNamespace(
    sample=pyro.sample,
    plate=pyro.plate,
    Normal=pyro.distributions.Normal,
    Bernoulli=pyro.distributions.Bernoulli,
    Gamma=pyro.distributions.Gamma,
    array=torch.as_tensor,
    name="pyro",
)
both = pytest.mark.parametrize("lib", [NUMPYRO, PYRO], ids=lambda lib: lib.name)
QUICK = {"discovery": pathmix.PriorDiscovery(100), "weights": "elbo", "progress": False}


def fit(model, *args, budget=4_000, **kwargs):
    return pathmix.SDVI(model, allocation=pathmix.Uniform(budget=budget), **QUICK).run(0, *args, **kwargs)


def pinned(posterior, draws, name):
    return np.array([path.pinned[name] for path in posterior.paths])[draws.path]


def observed_elsewhere(lib):
    def model(y):
        if lib.sample("k", lib.Bernoulli(0.5)) == 1:
            z = lib.sample("z", lib.Normal(0.0, 1.0))
        else:
            z = lib.sample("z", lib.Normal(0.0, 1.0), obs=lib.array(0.5))
        lib.sample("y", lib.Normal(z, 0.1), obs=y)

    return model


@both
def test_a_site_that_another_path_observes_keeps_its_draws(lib):
    posterior = fit(observed_elsewhere(lib), lib.array(0.6))
    count = 600
    for y in (lib.array(0.6), None):
        predicted = posterior.predict(0, count, y)
        inferred = pinned(posterior, predicted, "k") == 1
        # Given k = 1, z is N(0.6 / 1.01, 1 / 101), and y adds a variance of 0.01.
        drawn = predicted["y"][inferred]
        deviation = np.sqrt(1 / 101 + 0.01)
        assert drawn.mean() == pytest.approx(0.6 / 1.01, abs=5 * deviation / np.sqrt(inferred.sum()))
        assert drawn.std() == pytest.approx(deviation, rel=0.2)
        assert not predicted.present("z")[inferred].any()  # no prediction: it is in the draws
        # Given k = 0, z is data, and simulated.
        assert predicted["z"][~inferred].std() == pytest.approx(1.0, rel=0.25)
        difference = (predicted["y"] - predicted["z"])[~inferred]
        assert difference.std() == pytest.approx(0.1, rel=0.25)


def new_path(lib):
    def model(limit, y):
        if lib.sample("x", lib.Normal(0.0, 1.0)) < limit:
            mean = lib.sample("a", lib.Normal(0.0, 0.1))
        else:
            mean = lib.sample("b", lib.Normal(50.0, 0.1))
        lib.sample("y", lib.Normal(mean, 0.1), obs=y)

    return model


@both
def test_a_path_that_lacks_the_sites_of_a_draw_is_an_error(lib):
    posterior = fit(new_path(lib), 100.0, lib.array(0.0), budget=200)
    message = r"lack the site 'b'.*test_predictions.py:\d+"
    for operation in (posterior.predict, posterior.log_likelihood, posterior.with_fresh_plates().predict):
        with pytest.raises(ValueLookupError, match=message):
            operation(0, 50, 0.0, lib.array(0.0))
    assert np.all(np.abs(posterior.predict(0, 50, 100.0, None)["y"]) < 5)


def grouped(lib):
    """A mean for all groups, known well, and an effect for each."""

    def model(groups, y=None, noisy=False):
        mean = lib.sample("mean", lib.Normal(0.0, 10.0))
        with lib.plate("groups", groups):
            effect = lib.sample("effect", lib.Normal(mean, 2.0))
            if noisy:
                effect = effect + lib.sample("shift", lib.Normal(100.0, 1.0))
            lib.sample("y", lib.Normal(effect, 0.1), obs=y)

    return model


@both
def test_new_elements_of_a_plate_are_drawn_if_asked_for(lib):
    y = np.array([5.0, 9.0, 7.0, 3.0, 6.0])
    posterior = fit(grouped(lib), 5, lib.array(y), budget=20_000)
    kept = posterior.predict(0, 200, 5)["y"]
    np.testing.assert_allclose(kept.mean(axis=0), y, atol=0.2)  # of the same groups
    with pytest.raises(
        ValueLookupError, match=r"'effect' at .*:\d+ has shape \(7,\) .* \(5,\).*with_fresh_plates"
    ):
        posterior.predict(0, 200, 7)
    with pytest.raises(ValueLookupError, match=r"lack the site 'shift'.*with_fresh_plates"):
        posterior.predict(0, 200, 5, noisy=True)
    fresh = posterior.with_fresh_plates()
    new = fresh.predict(0, 800, 7)["y"]
    # The mean is N(6, 0.8) up to the prior; a new group adds 4.01, and all of a draw share the mean.
    assert new.shape == (800, 7)
    assert set(fresh.predict(0, 10, 7)) == {"effect", "y"} and set(fresh.predict(0, 10, 5)) == {"y"}
    np.testing.assert_allclose(new.mean(axis=0), 6.0, atol=5 * np.sqrt(4.8 / 800) + 0.05)
    np.testing.assert_allclose(new.std(axis=0), np.sqrt(4.8), rtol=0.15)
    shifted = fresh.predict(0, 200, 5, noisy=True)["y"]
    np.testing.assert_allclose(shifted.mean(axis=0), 100 + y, atol=0.6)  # the effects are still those drawn
    np.testing.assert_allclose(fresh.predict(0, 200, 5)["y"], kept)


def test_a_plate_that_a_pyro_program_loops_over():
    def model(y, count):
        scale = pyro.sample("scale", pyro.distributions.Gamma(100.0, 100.0))
        for i in pyro.plate("items", count):
            effect = pyro.sample(f"effect_{i}", pyro.distributions.Normal(10.0 * (i + 1), scale))
            pyro.sample(f"y_{i}", pyro.distributions.Normal(effect, 0.1), obs=None if y is None else y[i])

    posterior = fit(model, torch.tensor([10.5, 19.0]), 2)
    with pytest.raises(ValueLookupError, match=r"lack the site 'effect_2'.*with_fresh_plates"):
        posterior.predict(0, 20, None, 3)
    predicted = posterior.with_fresh_plates().predict(0, 200, None, 3)
    assert predicted["y_0"].mean() == pytest.approx(10.5, abs=0.2)
    assert predicted["y_2"].mean() == pytest.approx(30.0, abs=0.4)
    assert predicted["y_2"].std() == pytest.approx(1.0, rel=0.2)


@both
def test_shapes_that_do_not_fit_are_named(lib):
    def model(x, y=None):
        shape = lib.array(np.zeros(len(x)))
        slopes = lib.sample("slopes", lib.Normal(shape, 1.0).to_event(1))
        lib.sample("y", lib.Normal(slopes * x, 1.0), obs=y)

    posterior = fit(model, lib.array(np.ones(3)), lib.array(np.zeros(3)), budget=200)
    with pytest.raises(ValueLookupError, match=r"'slopes' at .*:\d+ has shape \(2,\) .* shape \(3,\)"):
        posterior.with_fresh_plates().predict(0, 5, lib.array(np.ones(2)))
    with pytest.raises(ProgramError, match=r"'y' at .*:\d+ is observed with values of shape \(4,\).*\(3,\)"):
        posterior.predict(0, 5, lib.array(np.ones(3)), lib.array(np.zeros(4)))


@both
def test_a_name_that_a_path_infers_is_not_simulated_for_draws_of_others(lib):
    """`z` is data on one path, inferred on another, absent on the third, whose draws know nothing of it."""

    def model(turn, y):
        kind = int(lib.sample("a", lib.Bernoulli(0.5))) + int(lib.sample("b", lib.Bernoulli(0.5)))
        z = 0.0
        if (kind + turn) % 3 == 0:
            z = lib.sample("z", lib.Normal(0.0, 1.0), obs=lib.array(0.3))
        if (kind + turn) % 3 == 1:
            z = lib.sample("z", lib.Normal(0.0, 1.0))
        lib.sample("y", lib.Normal(z, 1.0), obs=y)

    posterior = fit(model, 0, lib.array(0.5), budget=800)
    assert set(posterior.predict(0, 40, 0, None)) == {"z", "y"}
    with pytest.raises(ValueLookupError, match="lack the site 'z'"):
        posterior.predict(0, 40, 2, None)  # kind 2, without z, is led to where z is inferred


@both
def test_arguments_of_the_model_may_have_any_name(lib):
    def model(seed, count, fresh_plates):
        z = lib.sample("z", lib.Normal(float(seed), 1.0))
        lib.sample("y", lib.Normal(z, float(count)), obs=fresh_plates)

    posterior = fit(model, seed=3, count=1, fresh_plates=lib.array(4.0), budget=400)
    predicted = posterior.predict(0, 20, seed=3, count=1, fresh_plates=None)
    assert predicted["y"].shape == (20,)
    assert posterior.log_likelihood(0, 20, seed=3, count=1, fresh_plates=lib.array(4.0)).shape == (20,)


def scanned(y, steps=None):
    def step(last, now):
        x = numpyro.sample("x", Normal(0.0, 10.0))
        value = numpyro.sample("y", Normal(x + last, 0.1), obs=now)
        return value, None

    scan(step, 0.0, y, length=steps)


def test_draws_inside_a_scan_are_used_and_what_is_simulated_is_carried_on():
    y = jnp.array([30.0, 10.0, 20.0])
    posterior = fit(scanned, y, budget=20_000)
    draws, predicted = posterior.sample(0, 300), posterior.predict(0, 300, y)["y"]
    np.testing.assert_allclose(draws["x"].mean(axis=0), [30, -20, 10], atol=0.3)
    # x is N(30, 0.01), N(-20, 0.01), ... given the data, and y_t the sum of all before, with its noise.
    np.testing.assert_allclose(predicted.mean(axis=0), y, atol=0.15)
    np.testing.assert_allclose(predicted.std(axis=0), np.sqrt([0.02, 0.04, 0.06]), rtol=0.3)
    open_ended = posterior.predict(0, 300, None, 3)["y"]
    np.testing.assert_allclose(open_ended.mean(axis=0), y, atol=0.15)
    for length in (2, 5):
        with pytest.raises(ValueLookupError, match=rf"'x' at .*:\d+ has shape \({length},\).*\(3,\)"):
            posterior.with_fresh_plates().predict(0, 20, None, length)


def test_the_path_of_values_inside_a_scan_is_their_own():
    def model(y):
        def step(last, _):
            return numpyro.sample("x", Normal(last, 1.0)), None

        last, _ = scan(step, 0.0, jnp.arange(3))
        if last > 0:
            numpyro.sample("z", Normal(0.0, 1.0))
        numpyro.sample("y", Normal(last, 1.0), obs=y)

    posterior = fit(model, 0.5, budget=800)
    for sign in (1.0, -1.0):
        values = {"x": sign * np.array([0.1, 0.2, 0.3])} | ({"z": 0.1} if sign > 0 else {})
        assert np.isfinite(posterior.log_prob(values))


def test_draws_inside_a_cond_are_used():
    def model(flag, y):
        def inside(_):
            x = numpyro.sample("x", Normal(0.0, 10.0))
            return numpyro.sample("y", Normal(x, 0.1), obs=y)

        cond(flag, inside, inside, None)

    posterior = fit(model, True, 20.0, budget=12_000)  # after 8,000 steps the ELBO still rises
    predicted = posterior.predict(0, 200, True, 20.0)["y"]
    assert predicted.mean() == pytest.approx(20.0, abs=0.2)
    assert predicted.std() == pytest.approx(np.sqrt(0.02), rel=0.3)


def test_the_guide_keeps_what_another_path_observes():
    model, y = observed_elsewhere(PYRO), torch.tensor(0.6)
    posterior = fit(model, y, budget=8_000)
    guide, count = posterior.as_pyro_guide(), 300
    pyro.set_rng_seed(0)
    losses = np.array([pyro.infer.Trace_ELBO().loss(model, guide, y) for _ in range(count)])
    error = 5 * losses.std() / np.sqrt(count)
    assert -losses.mean() == pytest.approx(posterior.elbo, abs=error + 1e-2)
    # Both paths have an exact guide.
    first = np.log(0.5) + exact.stats.norm.logpdf(0.6, 0, np.sqrt(1.01))
    second = np.log(0.5) + exact.stats.norm.logpdf(0.5) + exact.stats.norm.logpdf(0.6, 0.5, 0.1)
    assert posterior.elbo == pytest.approx(np.logaddexp(first, second), abs=0.01)

    predictive = pyro.infer.Predictive(model, guide=guide, num_samples=400, return_sites=["k", "z", "y"])
    drawn = {name: values.squeeze().numpy() for name, values in predictive(None).items()}
    inferred = drawn["k"] == 1
    assert drawn["z"][inferred].mean() == pytest.approx(0.6 / 1.01, abs=0.05)
    assert drawn["z"][inferred].std() == pytest.approx(np.sqrt(1 / 101), rel=0.25)
    np.testing.assert_array_equal(drawn["z"][~inferred], 0.5)  # the guide leaves data alone
    assert (drawn["y"] - drawn["z"]).std() == pytest.approx(0.1, rel=0.2)


def test_the_guide_draws_what_only_other_paths_infer():
    def model(y, z=None):
        if pyro.sample("k", pyro.distributions.Bernoulli(0.5)) == 1:
            z = pyro.sample("z", pyro.distributions.Normal(0.0, 1.0))
        else:
            z = pyro.sample("z", pyro.distributions.Normal(5.0, 1.0), obs=z)
        pyro.sample("y", pyro.distributions.Normal(z, 1.0), obs=y)

    posterior = fit(model, torch.tensor(3.0), torch.tensor(5.0), budget=4_000)
    predictive = pyro.infer.Predictive(
        model, guide=posterior.as_pyro_guide(), num_samples=300, return_sites=["k", "z"]
    )
    pyro.set_rng_seed(0)
    drawn = {name: values.squeeze().numpy() for name, values in predictive(None).items()}
    left_open = drawn["z"][drawn["k"] == 0]
    assert left_open.mean() == pytest.approx(5.0, abs=5 / np.sqrt(len(left_open)))
    assert left_open.std() == pytest.approx(1.0, rel=0.3)


def test_the_guide_names_the_site_that_its_draw_lacks():
    model = new_path(PYRO)
    posterior = fit(model, 100.0, torch.tensor(0.0), budget=200)
    guide = posterior.as_pyro_guide()
    pyro.set_rng_seed(0)
    with pytest.raises(ValueLookupError, match=r"draws 'b' at test_predictions.py:\d+"):
        for _ in range(20):
            pyro.poutine.trace(guide).get_trace(0.0, torch.tensor(0.0))
