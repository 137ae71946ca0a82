"""Mistakes in Pyro programs: the message names the site, the line and the way out, as for NumPyro's."""

import math
import random
import subprocess
import sys
import textwrap

import numpy as np
import numpyro
import pyro
import pyro.distributions as dist
import pytest
import torch
from pyro import poutine

import pathmix
from pathmix import errors
from tests import exact


def run(model, *args, **options):
    options.setdefault("discovery", pathmix.PriorDiscovery(32))
    return exact.fit(model, *args, budget=50, weights="elbo", **options)


def test_duplicate_sites():
    def model():
        pyro.sample("x", dist.Normal(0, 1))
        pyro.sample("x", dist.Normal(0, 1))

    with pytest.raises(
        errors.DuplicateSiteError, match=r"'x': one at test_errors.py:\d+, one at test_errors"
    ):
        run(model)


@pytest.mark.parametrize(
    "convert",
    [
        float,
        lambda x: math.exp(x.item()),
        lambda x: torch.stack([x, x]).tolist()[0],
        lambda x: float(x.detach().numpy()),
        lambda x: float(np.asarray(x)),
    ],
)
def test_a_continuous_value_made_a_number(convert):
    def model():
        location = pyro.sample("location", dist.Normal(0, 1))
        pyro.sample("y", dist.Normal(convert(location), 1), obs=torch.tensor(0.0))

    with pytest.raises(errors.ContinuousDecisionError, match=r"test_errors.py:\d+.*depends on 'location'"):
        run(model)


def test_a_continuous_value_read_from_its_text():
    def model():
        location = pyro.sample("location", dist.Normal(0, 1))
        pyro.sample("y", dist.Normal(float(f"{location:.3f}"), 1), obs=torch.tensor(0.0))

    with pytest.raises(errors.ContinuousDecisionError, match=r"test_errors.py:\d+.*depends on 'location'"):
        run(model)


def test_whole_numbers_as_parameters():
    def model():
        k = pyro.sample("k", dist.Categorical(torch.tensor([0.5, 0.5])))
        pyro.sample("x", dist.Normal(k, 1.0))

    with pytest.raises(
        errors.UnsupportedSiteError, match=r"'x' at test_errors.py:\d+ cannot be drawn.*Normal.*1.0 \* k"
    ):
        run(model)


def test_discrete_values_may_become_numbers():
    def model():
        k = pyro.sample("k", dist.Bernoulli(0.5))
        pyro.sample("x", dist.Normal(float(k) * 0.5, 1))

    assert len(run(model).paths) == 2


def test_an_unsupported_discrete_site():
    def model():
        pyro.sample("x", dist.Normal(0, 1))
        rate = pyro.sample("count", dist.Poisson(100_000.0))
        pyro.sample("y", dist.Normal(rate, 1), obs=torch.tensor(0.0))

    with pytest.raises(errors.UnsupportedSiteError, match=r"'count' at test_errors.py:\d+ decides no branch"):
        run(model)


def test_a_discrete_site_with_too_many_values_together():
    def model():
        with pyro.plate("data", 20):
            z = pyro.sample("assignment", dist.Categorical(torch.ones(3) / 3))
        mu = pyro.sample("mu", dist.Normal(0, 1).expand([3]).to_event(1))
        pyro.sample("y", dist.Normal(mu[z].sum(), 1), obs=torch.tensor(0.0))

    with pytest.raises(errors.UnsupportedSiteError, match=r"'assignment'.*tables would be too large"):
        run(model)


def test_a_small_discrete_site_that_decides_nothing_is_enumerated():
    def model(y):
        k = pyro.sample("k", dist.Categorical(torch.tensor([0.5, 0.3, 0.2])))
        z = pyro.sample("z", dist.Normal(k * 2.0, 1))
        pyro.sample("y", dist.Normal(z, 1), obs=y)

    posterior = exact.fit(model, torch.tensor(2.0), budget=6_000)
    logs = np.log([0.5, 0.3, 0.2]) - (2.0 - 2.0 * np.arange(3)) ** 2 / 4
    for k, weight in enumerate(exact.softmax(logs)):
        assert posterior.weights[f"k={k}"] == pytest.approx(weight, abs=0.01)


def test_no_latent_site():
    def model(y):
        pyro.sample("y", dist.Normal(0, 1), obs=y)

    with pytest.raises(errors.NoLatentSiteError, match="nothing to infer"):
        run(model, torch.tensor(1.0))


def test_too_many_sites():
    def model():
        i, x = 0, pyro.sample("x", dist.Normal(0, 1))
        while x < 100:
            x, i = pyro.sample(f"x_{i}", dist.Normal(0, 1)), i + 1

    discovery = pathmix.PriorDiscovery(8, max_sites=20)
    with pytest.raises(errors.RunawayProgramError, match=r"max_sites=20.*'x_\d+' at test_errors.py:\d+"):
        run(model, discovery=discovery)


def test_too_long_a_run():
    def model():
        x = pyro.sample("x", dist.Normal(0, 1))
        while x < 100:
            x = x * 1.0

    discovery = pathmix.PriorDiscovery(8, max_seconds=0.5)
    with pytest.raises(errors.RunawayProgramError, match=r"max_seconds=0.5.*'x' at test_errors.py"):
        run(model, discovery=discovery)


def test_too_many_observed_sites():
    def model():
        pyro.sample("x", dist.Normal(0, 1))
        for i in range(10**9):
            pyro.sample(f"y_{i}", dist.Normal(0, 1), obs=torch.tensor(0.0))

    with pytest.raises(errors.RunawayProgramError, match="max_sites=20"):
        run(model, discovery=pathmix.PriorDiscovery(8, max_sites=20))


def test_a_continuous_value_that_pytorch_makes_a_number():
    def model():
        x = pyro.sample("x", dist.Uniform(0, 2))
        torch.zeros(x.long())
        pyro.sample("y", dist.Normal(x, 1), obs=torch.tensor(0.0))

    with pytest.raises(errors.ProgramError, match=r"At test_errors.py:\d+ PyTorch needs a number.*int\(k\)"):
        run(model)


def test_a_rounded_continuous_value_decides_the_path():
    def model():
        x = pyro.sample("x", dist.Uniform(0, 2))
        range(x.long())
        pyro.sample("y", dist.Normal(x, 1), obs=torch.tensor(0.0))

    assert run(model).weights.keys() == {"0 < x < 1", "1 <= x < 2"}


def test_a_random_value_where_a_number_is_needed():
    def model():
        k = pyro.sample("k", dist.Categorical(torch.ones(2)))
        pyro.sample("x", dist.Normal([1.0, 2.0][k / 1], 1))

    with pytest.raises(TypeError, match=r"float\d+ cannot be used as an index; use int\(k\)"):
        run(model)


def test_a_shape_that_depends_on_a_random_value():
    def model():
        x = pyro.sample("x", dist.Normal(0, 1).expand([3]).to_event(1))
        pyro.sample("y", dist.Normal(x[x > 0].sum(), 1), obs=torch.tensor(0.0))

    with pytest.raises(
        errors.ProgramError, match=r"shape of what PyTorch gives at test_errors.py:\d+ depends on 'x'"
    ):
        run(model)


def test_endless_recursion():
    def model(depth=0):
        pyro.sample(f"x_{depth}", dist.Normal(0, 1))
        model(depth + 1)

    with pytest.raises(errors.RunawayProgramError, match=r"recursed too deeply.*'x_\d+'"):
        run(model, discovery=pathmix.PriorDiscovery(4))


def coins():
    generator = np.random.default_rng(0)
    return {
        "numpy": generator.random,
        "python": random.Random(0).random,
        "torch": lambda: float(torch.rand(())),
    }


@pytest.mark.parametrize("library", ["numpy", "python", "torch"])
def test_hidden_randomness_that_decides(library):
    toss = coins()[library]

    def model():
        if toss() < 0.5:
            pyro.sample("heads", dist.Normal(0, 1))
        else:
            pyro.sample("tails", dist.Normal(0, 1))

    with pytest.raises(errors.HiddenRandomnessError, match="same seed"):
        run(model)


@pytest.mark.parametrize(
    "draw",
    [
        lambda: torch.randn(()),
        lambda: torch.rand(3).sum(),
        lambda: torch.rand((), generator=torch.Generator()),
        lambda: torch.empty(()).normal_(),
        lambda: torch.distributions.Normal(0.0, 1.0).sample(),
        lambda: dist.Gamma(2.0, 1.0).sample(),
        lambda: torch.nn.functional.dropout(torch.ones(3), 0.5).sum(),
    ],
)
def test_hidden_randomness_in_a_value(draw):
    def model():
        x = pyro.sample("x", dist.Normal(0, 1))
        pyro.sample("y", dist.Normal(x + draw(), 1), obs=torch.tensor(0.0))

    with pytest.raises(errors.HiddenRandomnessError, match=r"outside of pyro\.sample"):
        run(model)


def test_hidden_state():
    calls = []

    def model():
        calls.append(0)
        for i in range(len(calls)):
            pyro.sample(f"x_{i}", dist.Normal(0, 1))

    with pytest.raises(errors.HiddenRandomnessError, match="same seed"):
        run(model)


def test_a_blocked_random_site():
    """A hidden site is out of reach of inference, and random all the same."""

    def model():
        x = pyro.sample("x", dist.Normal(0, 1))
        with poutine.block():
            z = pyro.sample("z", dist.Normal(0, 1))
        pyro.sample("y", dist.Normal(x + z, 1), obs=torch.tensor(0.0))

    with pytest.raises(errors.HiddenRandomnessError, match=r"outside of pyro\.sample"):
        run(model)


def test_a_blocked_site_that_decides():
    def model():
        with poutine.block():
            k = pyro.sample("k", dist.Bernoulli(0.5))
        pyro.sample("x" if k else "z", dist.Normal(0, 1))

    with pytest.raises(errors.HiddenRandomnessError, match="same seed"):
        run(model)


def test_a_site_name_made_of_a_random_tensor():
    def model():
        k = pyro.sample("k", dist.Bernoulli(0.5).expand([2]).to_event(1))
        pyro.sample(f"x_{k}", dist.Normal(0, 1))

    with pytest.raises(errors.ProgramError, match=r"test_errors.py:\d+ is built from a random value"):
        run(model)


def test_a_site_name_made_of_a_random_number():
    """Pyro writes a tensor without dimensions as its number, which is a decision like any other."""

    def model():
        k = pyro.sample("k", dist.Categorical(torch.ones(2)))
        pyro.sample(f"x_{k}", dist.Normal(0, 1))

    assert {path.addresses for path in run(model).paths} == {("k", "x_0"), ("k", "x_1")}


def test_a_site_without_a_distribution():
    def model():
        pyro.sample("x", dist.Normal(0, 1))
        pyro.sample("f", lambda: torch.tensor(1.0))

    with pytest.raises(errors.UnsupportedSiteError, match=r"'f' at test_errors.py:\d+ draws from <func"):
        run(model)


def test_the_programs_own_errors_come_through():
    def model():
        pyro.sample("x", dist.Normal(0, 1))
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        run(model)


def test_the_programs_own_errors_before_any_site_come_through():
    def model():
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        run(model)


def test_a_numpyro_site_in_a_pyro_program():
    def model():
        pyro.sample("x", dist.Normal(0, 1))
        numpyro.sample("z", numpyro.distributions.Normal(0, 1))

    with pytest.raises(
        errors.MixedLibrariesError, match=r"with pyro, but the site 'z' at test_errors.py:\d+ .* numpyro"
    ):
        run(model)


def test_a_pyro_site_in_a_numpyro_program():
    def model():
        numpyro.sample("x", numpyro.distributions.Normal(0, 1))
        pyro.sample("z", dist.Normal(0, 1))

    with pytest.raises(
        errors.MixedLibrariesError, match=r"with numpyro, but the site 'z' at test_errors.py:\d+ .* pyro"
    ):
        run(model)


@pytest.mark.parametrize("missing", ["torch", "pyro"])
def test_without_pyro_installed(missing):
    """NumPyro programs work, and a Pyro program is told what to install."""
    code = f"""
        import sys

        from importlib.machinery import PathFinder

        class Without:
            @staticmethod
            def find_spec(name, path=None, target=None):
                return None if name.split(".")[0] == {missing!r} else PathFinder.find_spec(name, path, target)

        sys.meta_path = [Without if finder is PathFinder else finder for finder in sys.meta_path]
        import numpyro, numpyro.distributions, pathmix

        def for_numpyro(y):
            z = numpyro.sample("z", numpyro.distributions.Normal(0, 1))
            numpyro.sample("y", numpyro.distributions.Normal(z, 1), obs=y)

        def for_pyro(y):
            import pyro

            pyro.sample("z", pyro.distributions.Normal(0, 1))

        options = dict(allocation=pathmix.Uniform(50), discovery=pathmix.PriorDiscovery(8), progress=False)
        print(list(pathmix.SDVI(for_numpyro, **options).run(0, 0.5).weights))
        try:
            pathmix.SDVI(for_pyro, **options).run(0, 0.5)
        except pathmix.errors.MissingExtraError as error:
            print(error)
        """
    out = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True)
    assert out.returncode == 0, out.stderr
    first, second = out.stdout.strip().splitlines()
    assert first == "['always']"
    assert f"needs {missing}" in second and "pip install 'pathmix[pyro]'" in second


@pytest.mark.parametrize("transform", [torch.vmap, torch.func.grad])
def test_a_site_inside_a_transformed_function(transform):
    def model():
        transform(lambda x: x.sum() + pyro.sample("inner", dist.Normal(0, 1)))(torch.ones(2))

    with pytest.raises(errors.ProgramError, match=r"'inner' at test_errors.py:\d+ inside a function"):
        run(model)


def test_a_support_without_a_smooth_map():
    def model():
        pyro.sample("direction", dist.ProjectedNormal(torch.tensor([0.0, 0.0, 1.0])))

    with pytest.raises(errors.UnsupportedSiteError, match=r"'direction' at test_errors.py:\d+ has the"):
        run(model)


def test_given_values_of_another_shape():
    def model():
        pyro.sample("x", dist.Normal(0, 1))

    with pytest.raises(errors.ValueLookupError, match=r"'x' at test_errors.py:\d+ has shape \(\)"):
        run(model).log_prob({"x": [0.0, 1.0]})
