"""Mistakes in programs, values and options: the message names the site, the line and the way out."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import numpyro.infer.autoguide
import pytest

import pathmix
from pathmix import errors
from tests import exact
from tests.zoo import programs


def run(model, *args, **options):
    options.setdefault("discovery", pathmix.PriorDiscovery(32))
    return exact.fit(model, *args, budget=50, weights="elbo", **options)


def test_duplicate_sites():
    def model():
        numpyro.sample("x", dist.Normal(0, 1))
        numpyro.sample("x", dist.Normal(0, 1))

    with pytest.raises(
        errors.DuplicateSiteError, match=r"'x': one at test_errors.py:\d+, one at test_errors"
    ):
        run(model)


@pytest.mark.parametrize(
    "convert", [float, lambda x: x.item(), np.exp, lambda x: jnp.stack([x, x]).tolist()[0]]
)
def test_a_continuous_value_made_a_number(convert):
    def model():
        location = numpyro.sample("location", dist.Normal(0, 1))
        numpyro.sample("y", dist.Normal(convert(location), 1), obs=0.0)

    with pytest.raises(errors.ContinuousDecisionError, match=r"test_errors.py:\d+.*depends on 'location'"):
        run(model)


def test_discrete_values_may_become_numbers():
    def model():
        k = numpyro.sample("k", dist.Bernoulli(0.5))
        numpyro.sample("x", dist.Normal(float(k) * 0.5, 1))

    assert len(run(model).paths) == 2


def test_an_unsupported_discrete_site():
    def model():
        numpyro.sample("x", dist.Normal(0, 1))
        rate = numpyro.sample("count", dist.Poisson(100_000.0))
        numpyro.sample("y", dist.Normal(rate, 1), obs=0.0)

    with pytest.raises(errors.UnsupportedSiteError, match=r"'count' at test_errors.py:\d+ decides no branch"):
        run(model)


def test_a_discrete_site_with_too_many_values_together():
    def model():
        with numpyro.plate("data", 20):
            z = numpyro.sample("assignment", dist.Categorical(probs=jnp.ones(3) / 3))
        mu = numpyro.sample("mu", dist.Normal(0, 1).expand([3]).to_event(1))
        numpyro.sample("y", dist.Normal(mu[z].sum(), 1), obs=0.0)

    with pytest.raises(
        errors.UnsupportedSiteError, match=r"'assignment'.*test_errors.py.*tables would be too"
    ):
        run(model)


def test_a_small_discrete_site_that_decides_nothing_is_enumerated():
    def model(y):
        k = numpyro.sample("k", dist.Categorical(probs=jnp.array([0.5, 0.3, 0.2])))
        z = numpyro.sample("z", dist.Normal(k * 2.0, 1))
        numpyro.sample("y", dist.Normal(z, 1), obs=y)

    posterior = exact.fit(model, 2.0, budget=6_000)
    logs = np.log([0.5, 0.3, 0.2]) - (2.0 - 2.0 * np.arange(3)) ** 2 / 4
    for k, weight in enumerate(exact.softmax(logs)):
        assert posterior.weights[f"k={k}"] == pytest.approx(weight, abs=0.01)


def test_no_latent_site():
    def model(y):
        numpyro.sample("y", dist.Normal(0, 1), obs=y)

    with pytest.raises(errors.NoLatentSiteError, match="nothing to infer"):
        run(model, 1.0)


def test_too_many_sites():
    def model():
        i, x = 0, numpyro.sample("x", dist.Normal(0, 1))
        while x < 100:
            x, i = numpyro.sample(f"x_{i}", dist.Normal(0, 1)), i + 1

    discovery = pathmix.PriorDiscovery(8, max_sites=20)
    with pytest.raises(errors.RunawayProgramError, match=r"max_sites=20.*'x_\d+' at test_errors.py:\d+"):
        run(model, discovery=discovery)


def test_too_long_a_run():
    def model():
        x = numpyro.sample("x", dist.Normal(0, 1))
        while x < 100:
            x = x * 1.0

    discovery = pathmix.PriorDiscovery(8, max_seconds=0.5)
    with pytest.raises(errors.RunawayProgramError, match=r"max_seconds=0.5.*'x' at test_errors.py"):
        run(model, discovery=discovery)


def test_too_many_observed_sites():
    def model():
        numpyro.sample("x", dist.Normal(0, 1))
        for i in range(10**9):
            numpyro.sample(f"y_{i}", dist.Normal(0, 1), obs=0.0)

    with pytest.raises(errors.RunawayProgramError, match="max_sites=20"):
        run(model, discovery=pathmix.PriorDiscovery(8, max_sites=20))


@pytest.mark.parametrize(
    "use", [lambda k: numpyro.plate("n", k), lambda k: jnp.arange(k), lambda k: {1: 2}[k]]
)
def test_a_random_value_where_a_number_is_needed(use):
    def model():
        k = numpyro.sample("k", dist.DiscreteUniform(1, 2))
        use(k)

    with pytest.raises(TypeError) as caught:
        run(model)
    assert any("int(k)" in note and "test_errors.py:" in note for note in caught.value.__notes__)


def test_endless_recursion():
    def model(depth=0):
        numpyro.sample(f"x_{depth}", dist.Normal(0, 1))
        model(depth + 1)

    with pytest.raises(errors.RunawayProgramError, match=r"recursed too deeply.*'x_\d+'"):
        run(model)


def test_hidden_randomness():
    generator = np.random.default_rng(0)

    def model():
        if generator.random() < 0.5:
            numpyro.sample("heads", dist.Normal(0, 1))
        else:
            numpyro.sample("tails", dist.Normal(0, 1))

    with pytest.raises(errors.HiddenRandomnessError, match="same seed"):
        run(model)


def test_hidden_state():
    calls = []

    def model():
        calls.append(0)
        for i in range(len(calls)):
            numpyro.sample(f"x_{i}", dist.Normal(0, 1))

    with pytest.raises(errors.HiddenRandomnessError, match="same seed"):
        run(model)


def test_a_site_name_made_of_a_random_value():
    def model():
        k = numpyro.sample("k", dist.Bernoulli(0.5))
        numpyro.sample(f"x_{k}", dist.Normal(0, 1))

    with pytest.raises(errors.ProgramError, match=r"test_errors.py:\d+ is built from a random value"):
        run(model)


def test_a_site_inside_jit():
    def model():
        jax.jit(lambda: numpyro.sample("x", dist.Normal(0, 1)))()

    with pytest.raises(errors.ProgramError, match="draws a site inside a function"):
        run(model)


def test_the_programs_own_errors_come_through():
    def model():
        numpyro.sample("x", dist.Normal(0, 1))
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        run(model)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"guide": "meanfeild"}, "'meanfield', 'fullrank', 'lowrank'"),
        ({"guide": pathmix.MeanField}, "Guide instance"),
        ({"guide": 3}, "guide must be"),
        ({"guide": numpyro.infer.autoguide.AutoNormal(programs.one_path)}, "autoguides"),
        ({"particles": 0}, "particles must be a whole number"),
        ({"particles": 2.5}, "particles must be a whole number"),
        ({"elbo_samples": -1}, "elbo_samples"),
        ({"gradient": "exact"}, "gradient must be one of"),
        ({"precision": "float16"}, "precision must be one of"),
        ({"threads": 0}, "threads must be"),
        ({"progress": "yes"}, "progress must be True, False or an object"),
        ({"optimizer": 0.01}, "optax"),
        ({"discovery": 1_000}, "discovery must be an object"),
        ({"allocation": pathmix.Uniform}, "allocation must be an object"),
    ],
)
def test_option_values_are_checked_at_construction(options, message):
    with pytest.raises(errors.OptionError, match=message):
        pathmix.SDVI(programs.one_path, **options)


def test_option_names_are_checked_at_construction():
    with pytest.raises(TypeError, match="particels"):
        pathmix.SDVI(programs.one_path, particels=3)  # pyright: ignore
    with pytest.raises(TypeError, match="positional"):
        pathmix.SDVI(programs.one_path, "fullrank")  # pyright: ignore
    with pytest.raises(errors.OptionError, match="callable"):
        pathmix.SDVI(None)  # pyright: ignore
    for samples in (0, 1.5, "many"):
        with pytest.raises(errors.OptionError, match="samples"):
            pathmix.PriorDiscovery(samples)


def test_a_guide_callable_must_give_a_guide():
    with pytest.raises(errors.OptionError, match="not a Guide"):
        run(programs.one_path, 0.5, guide=lambda slp: "fullrank")


def test_the_seed_comes_first():
    for wrong in (None, 1.5, "0", True, jnp.zeros(3)):
        with pytest.raises(errors.OptionError, match="first argument is the seed"):
            pathmix.SDVI(programs.one_path).run(wrong, 0.5)
