"""Parameters that are given values of sites: Pyro keeps those of the first run."""

import jax.numpy as jnp
import numpy as np
import pyro
import pyro.contrib.gp.kernels as kernels
import pyro.distributions as dist
import pytest
import torch
from pyro.nn import PyroModule, PyroParam, PyroSample
from torch import nn

import pathmix
from pathmix.errors import ParameterError
from tests.paths import discover, target_of

X, Y = torch.linspace(0, 1, 5), torch.linspace(-1, 1, 5) ** 2
OUTSIDE = kernels.RBF(1)


@pytest.fixture(autouse=True)
def _empty_store():
    pyro.clear_param_store()
    yield
    pyro.clear_param_store()


def observe(kernel):
    noise = 0.1 * torch.eye(5)
    pyro.sample("y", dist.MultivariateNormal(torch.zeros(5), kernel(X.to(noise)) + noise), obs=Y.to(noise))


def drawn():
    return pyro.sample("l", dist.LogNormal(0.0, 1.0))


def made():
    observe(kernels.RBF(1, lengthscale=drawn()))


def put_in():
    OUTSIDE.lengthscale = drawn()
    observe(OUTSIDE)


def put_in_as_parameter():
    kernel = kernels.RBF(1)
    kernel.lengthscale = PyroParam(drawn(), dist.constraints.positive)
    observe(kernel)


def statement():
    observe(lambda x: pyro.param("w", drawn()) * torch.outer(x, x))


def statement_with_a_function():
    w = drawn()
    observe(lambda x: pyro.param("w", lambda: 2 * w) * torch.outer(x, x))


class Slope(PyroModule):
    def __init__(self, w):
        super().__init__()
        self.w = PyroParam(w)

    def forward(self, x):
        return self.w * torch.outer(x, x)


def module_of_ones_own():
    observe(Slope(drawn()))


@pytest.mark.parametrize(
    "model",
    [made, put_in, put_in_as_parameter, statement, statement_with_a_function, module_of_ones_own],
)
def test_those_that_depend_on_a_site_are_refused(model):
    with pytest.raises(ParameterError, match=r"'(lengthscale|w)' at test_starts.py:\d+ depends on a random"):
        discover(model, samples=3)


def taken_out():
    kernel = kernels.RBF(1)
    del kernel.lengthscale
    kernel.lengthscale = drawn()
    observe(kernel)


def with_a_prior():
    kernel = kernels.RBF(1)
    kernel.lengthscale = PyroSample(dist.LogNormal(0.0, 1.0))
    observe(kernel)


@pytest.mark.parametrize("model", [taken_out, with_a_prior])
def test_what_the_error_advises_gives_the_right_density(model, engine):
    (path,) = discover(model, samples=3).paths
    target = target_of(path)
    x, y = X.double().numpy(), Y.double().numpy()
    for length in (0.5, 1.7):
        covariance = np.exp(-0.5 * ((x[:, None] - x) / length) ** 2) + 0.1 * np.eye(5)
        expected = -0.5 * np.log(2 * np.pi) - np.log(length) - np.log(length) ** 2 / 2
        expected -= 0.5 * np.linalg.slogdet(2 * np.pi * covariance)[1]
        expected -= 0.5 * y @ np.linalg.solve(covariance, y)
        found = target.formula.density(jnp.array([np.log(length)]), target.arguments).log_joint
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_another_start_on_another_path_is_refused():
    def model():
        start = 3.0 if pyro.sample("b", dist.Bernoulli(0.5)) else 1.0
        observe(kernels.RBF(1, lengthscale=torch.tensor(start)))

    with pytest.raises(ParameterError, match="starts at another value on this path"):
        discover(model, samples=20)


def test_values_in_the_store_are_for_all_paths():
    pyro.param("w", torch.tensor(2.0))

    def model():
        start = 3.0 if pyro.sample("b", dist.Bernoulli(0.5)) else 1.0
        observe(lambda x: pyro.param("w", torch.tensor(start)) * torch.outer(x, x))

    posterior = pathmix.SDVI(model, progress=False, discovery=pathmix.PriorDiscovery(20)).run(0)
    np.testing.assert_allclose(posterior.paths[0].weight, 0.5)


class Inside(PyroModule):
    def __init__(self, w):
        super().__init__()
        self.slope = Slope(w)

    def forward(self, x):
        return self.slope(x)


def test_values_in_the_store_are_for_modules_inside_of_others_too():
    pyro.param("slope.w", torch.tensor(2.0))

    def model():
        start = 3.0 if pyro.sample("b", dist.Bernoulli(0.5)) else 1.0
        observe(Inside(torch.tensor(start)))

    posterior = pathmix.SDVI(model, progress=False, discovery=pathmix.PriorDiscovery(20)).run(0)
    np.testing.assert_allclose(posterior.paths[0].weight, 0.5)


def test_what_a_module_has_by_itself_is_followed(engine):
    def model():
        w = Slope(drawn()).w
        observe(lambda x: w * torch.outer(x, x))

    (path,) = discover(model, samples=3).paths
    target = target_of(path)
    one, other = (target.formula.density(jnp.array([u]), target.arguments).log_likelihood for u in (0.0, 1.0))
    assert abs(one - other) > 0.01


def test_starts_may_be_drawn():
    def model():
        pyro.sample("b", dist.Bernoulli(0.5)).item()
        observe(lambda x: pyro.param("w", torch.randn(())) ** 2 * torch.outer(x, x))

    assert len(discover(model, samples=20).paths) == 2


def test_modules_are_as_they_were():
    layer = nn.Linear(1, 1)

    def model():
        layer.weight = nn.Parameter(drawn().reshape(1, 1).float())
        observe(lambda x: layer(x[:, None].float()).double() ** 2 * torch.eye(5))

    for _ in range(2):
        discover(model, samples=3)
        assert "functional" not in repr(layer.weight)
        layer.weight.data = torch.ones(1, 1)
