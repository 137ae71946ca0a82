"""The automatic guides of Pyro and NumPyro, as posteriors."""

import numpy as np
import numpyro
import numpyro.distributions as dist
import pyro
import pyro.distributions as pyro_dist
import pytest
import torch
from numpyro import handlers
from scipy import stats

import pathmix
from experiments.baselines import WholeAutoGuide
from pathmix.errors import OptionError, UnsupportedSiteError
from tests import exact
from tests.zoo import programs, pyro_programs


def fit(model, *args, seed=0, **options):
    options = {"discovery": pathmix.PriorDiscovery(16), "progress": False, "elbo_samples": 500} | options
    return WholeAutoGuide(model, **options).run(seed, *args)


@pytest.fixture(scope="module")
def two():
    return fit(pyro_programs.two_branches, torch.tensor(2.0), steps=1_500)


def test_stochastic_support_in_pyro(two):
    """Gradients do not see the branch, so x stays near its prior and both branches are fitted."""
    assert {path.label for path in two.paths} == {"x < 0", "x >= 0"}
    assert sum(path.weight for path in two.paths) == pytest.approx(1)
    assert all(0.2 < path.weight < 0.8 for path in two.paths)  # the truth is 0.92 and 0.08
    assert two.elbo < exact.logsumexp([*exact.two_branches(2.0).values()])
    draws = two.sample(1, 2_000)
    # z1 and z2 are conjugate given their path: N(-2, 0.8) and N(2.8, 0.8), up to the noise of Adam.
    assert np.nanmean(draws["z1"]) == pytest.approx(-2, abs=0.3)
    assert np.nanmean(draws["z2"]) == pytest.approx(2.8, abs=0.3)
    assert np.all((draws["x"] >= 0) == draws.present("z2"))
    assert len(two.paths[0].history) == two.paths[0].steps == 1_500
    assert two.likelihood_evaluations == 1_500 + 500 + 16


def test_the_density_is_the_guide_s(two):
    """log_prob against normals read off the component's draws would be noisy; against a grid it is exact."""
    grid = np.linspace(-8, 8, 161)
    other = {"z1": -2.0, "z2": 2.8}
    density = [two.log_prob({"x": x, **{n: other[n] for n in (["z1"] if x < 0 else ["z2"])}}) for x in grid]
    left, right = np.exp(density)[grid < 0], np.exp(density)[grid >= 0]
    # q(x) q(z) at a fixed z: the shape over x is one normal, cut at zero and scaled on either side.
    x_mean, x_sd = two.sample(3, 5_000)["x"].mean(), two.sample(3, 5_000)["x"].std()
    shape = stats.norm.pdf(grid, x_mean, x_sd)
    for part, own in ((left, shape[grid < 0]), (right, shape[grid >= 0])):
        assert np.corrcoef(part, own)[0, 1] > 0.98
    values = two._joint_draw(7)
    assert two.log_prob(values[1]) == pytest.approx(values[2])


def test_the_elbo_is_pyro_s_own():
    """Against Pyro's loss of the same kind of guide, trained by hand with the same learning rate."""
    posterior = fit(pyro_programs.one_path, torch.tensor(0.5), steps=1_000)
    assert posterior.elbo == pytest.approx(stats.norm.logpdf(0.5, 0, np.sqrt(2)), abs=0.02)
    assert np.mean(posterior.paths[0].history[-100:]) == pytest.approx(posterior.elbo, abs=0.1)


def test_the_users_state_is_left_alone():
    pyro.clear_param_store()
    pyro.param("locs.z", torch.tensor(50.0))  # the name that the guide gives to its own parameter
    before, rng, dtype = (
        dict(pyro.get_param_store().items()),
        torch.get_rng_state(),
        torch.get_default_dtype(),
    )
    posterior = fit(pyro_programs.one_path, torch.tensor(0.5), steps=300)
    values = posterior._joint_draw(0).values
    posterior.log_prob(values)
    assert abs(float(values["z"])) < 10  # it did not start from the user's parameter
    after = dict(pyro.get_param_store().items())
    assert list(after) == ["locs.z"] and after["locs.z"].item() == before["locs.z"].item() == 50
    assert torch.equal(rng, torch.get_rng_state()) and dtype == torch.get_default_dtype()
    pyro.clear_param_store()


def test_parameters_of_the_model_stay():
    def model(y):
        shift = pyro.param("shift", torch.tensor(1.0))
        z = pyro.sample("z", pyro_dist.Normal(shift, 1))
        pyro.sample("y", pyro_dist.Normal(z, 1), obs=y)

    posterior = fit(model, torch.tensor(0.5), steps=1_000)
    assert any("shift" in note for note in posterior.notes)
    assert posterior.elbo == pytest.approx(stats.norm.logpdf(0.5, 1, np.sqrt(2)), abs=0.02)
    assert "shift" not in pyro.get_param_store()


def static(y):
    rate = numpyro.sample("rate", dist.Gamma(3.0, 2.0))
    with numpyro.plate("data", len(y)):
        numpyro.sample("y", dist.Exponential(rate), obs=y)
    numpyro.deterministic("mean", 1 / rate)


def test_static_support_in_numpyro():
    """A log-normal guide is near the posterior, Gamma(3 + n, 2 + sum y)."""
    y = np.array([0.5, 1.5, 0.2, 0.9])
    posterior = fit(static, y, learning_rate=0.02, particles=5)
    shape, rate = 3 + len(y), 2 + y.sum()
    log_z = 3 * np.log(2) - np.log(2) + exact.special.gammaln(shape) - shape * np.log(rate)  # Gamma(3) = 2
    assert log_z - 0.05 < posterior.elbo < log_z + 0.01
    draws = posterior.sample(0, 2_000)
    np.testing.assert_allclose(draws["mean"], 1 / draws["rate"])
    # 500 draws of relative spread 0.38: five errors, once in a million, and the guide's own bias.
    assert np.nanmean(draws["rate"]) == pytest.approx(
        shape / rate, rel=5 * 0.4 * np.sqrt(1 / 500 + 1 / 2_000) + 0.02
    )
    assert posterior.predict(0, 20, y)["y"].shape == (20, 4)
    grid = np.linspace(1e-3, 8, 50)
    density = np.exp([posterior.log_prob({"rate": r}) for r in grid])
    assert np.sum(density) * (grid[1] - grid[0]) == pytest.approx(1, abs=0.01)


def test_subsampled_plates_in_numpyro():
    def model(y, batch):
        with numpyro.plate("data", len(y), subsample_size=batch) as rows:
            local = numpyro.sample("local", dist.Normal(0, 1))
            numpyro.sample("y", dist.Normal(local, 1), obs=y[rows])

    y = np.array([0.5, -1.0, 2.0, 0.0])
    posterior = fit(model, y, 2, learning_rate=0.02)
    assert posterior.elbo == pytest.approx(stats.norm.logpdf(y, 0, np.sqrt(2)).sum(), abs=0.05)
    assert posterior.sample(0, 10)["local"].shape == (10, 4)


def test_parameters_of_a_numpyro_model_stay():
    def model(y):
        shift = numpyro.param("shift", 1.0)
        z = numpyro.sample("z", dist.Normal(shift, 1))
        numpyro.sample("y", dist.Normal(z, 1), obs=y)

    posterior = fit(model, 0.5, steps=1_500)
    assert posterior.elbo == pytest.approx(stats.norm.logpdf(0.5, 1, np.sqrt(2)), abs=0.02)


@pytest.mark.parametrize("module", [programs, pyro_programs], ids=["numpyro", "pyro"])
def test_discrete_sites_are_refused(module):
    with pytest.raises(UnsupportedSiteError, match=r"'active' at .* is discrete.*SDVI or BBVI"):
        fit(module.spike_and_slab, 1.5 if module is programs else torch.tensor(1.5), steps=10)


def test_discrete_sites_that_discovery_missed_are_refused():
    def model():
        x = pyro.sample("x", pyro_dist.Normal(0, 1))
        if x.abs() < 0.01:
            pyro.sample("late", pyro_dist.Bernoulli(0.5))

    with pytest.raises(UnsupportedSiteError, match=r"'late' at .* is discrete"):
        fit(model, steps=200, discovery=pathmix.PriorDiscovery(1))


@pytest.mark.parametrize("model", [programs.two_branches, programs.same_addresses], ids=lambda m: m.__name__)
def test_stochastic_support_in_numpyro_is_refused(model):
    with pytest.raises(UnsupportedSiteError, match=r"static support.*SDVI or BBVI"):
        fit(model, 2.0)


def test_the_same_seed_gives_the_same_posterior():
    for model, y in ((pyro_programs.two_branches, torch.tensor(2.0)), (programs.one_path, 2.0)):
        runs = [fit(model, y, steps=30, seed=5, elbo_samples=50) for _ in range(2)]
        assert runs[0].elbo == runs[1].elbo
        np.testing.assert_array_equal(runs[0].paths[0].history, runs[1].paths[0].history)


def test_conditioning_from_outside():
    model = handlers.condition(programs.one_path, data={"z": 0.3})
    with pytest.raises(pathmix.ProgramError, match="no latent site"):
        fit(model, 0.5)


@pytest.mark.parametrize(
    "options",
    [
        {"steps": 0},
        {"particles": 1.5},
        {"learning_rate": -1},
        {"elbo_samples": True},
        {"discovery": None},
        {"precision": "double"},
        {"progress": "no"},
    ],
    ids=lambda options: next(iter(options)),
)
def test_options_are_checked(options):
    with pytest.raises(OptionError, match=next(iter(options))):
        WholeAutoGuide(programs.one_path, **options)
    with pytest.raises(OptionError, match="callable"):
        WholeAutoGuide(None)
