"""`torch.autograd.Function`: values and gradients are those of its own passes."""

import numpy as np
import pyro
import pyro.distributions as dist
import pytest
import torch

from benchmarks.catalogue.programs.networks import Bessel
from pathmix.errors import PathmixWarning
from pathmix.frontends.pyro.flatten import flatten
from pathmix.frontends.pyro.lowering import callback
from tests.frontends.pyro.against_torch import double_precision, in_jax, in_torch
from tests.paths import discover


@pytest.fixture(autouse=True)
def _double_precision():
    with double_precision():
        yield


class StraightThrough(torch.autograd.Function):
    """Its derivative is not that of its forward pass."""

    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        ctx.save_for_backward(x)
        return torch.round(x) * factor

    @staticmethod
    def backward(ctx, weight):
        (x,) = ctx.saved_tensors
        return weight * ctx.factor * torch.ones_like(x), None


class OfTwo(torch.autograd.Function):
    """With a context that is set up apart, a second result without slope, and unusual gradients."""

    @staticmethod
    def forward(x, y):
        return x * y, (x > y).long()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.mark_non_differentiable(output[1])

    @staticmethod
    def backward(ctx, weight, _):
        x, y = ctx.saved_tensors
        return 3 * weight * y, 5 * weight * x


class Swapped(torch.autograd.Function):
    """Another such function inside."""

    @staticmethod
    def forward(ctx, x):
        return StraightThrough.apply(x.exp(), 2.0)

    @staticmethod
    def backward(ctx, weight):
        return -weight


def _of_two(x, y):
    product, larger = OfTwo.apply(x, y)
    return product.sin() + larger


FUNCTIONS = {
    "not the derivative": (lambda x: StraightThrough.apply(3 * x, 2.0), 1),
    "two tensors": (_of_two, 2),
    "NumPy inside": (lambda x: Bessel.apply(x.exp()), 1),
    "nested": (lambda x: Swapped.apply(x), 1),
    "of a constant": (lambda x: x * StraightThrough.apply(torch.ones(3), 2.0), 1),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_gradients_are_those_of_its_passes(name, monkeypatch):
    monkeypatch.setattr(callback, "_warn_once", lambda _: None)
    function, count = FUNCTIONS[name]
    inputs = [torch.linspace(0.3 + i, 2.1, 3) for i in range(count)]
    once = flatten(lambda *x: [function(*x)], inputs)
    expected = in_torch(lambda *x: [function(*x)], inputs, [True] * count)
    found = in_jax(once, inputs, [True] * count)
    for ours, theirs in zip(
        found.values + found.gradients, expected.values + expected.gradients, strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    assert once.fingerprint == flatten(lambda *x: [function(*x)], inputs).fingerprint


def test_only_what_leaves_pytorch_is_called_back(monkeypatch):
    monkeypatch.setattr(callback, "_named", set())
    inputs = [torch.linspace(0.3, 2.1, 3)]
    in_jax(flatten(lambda x: [StraightThrough.apply(x, 2.0)], inputs), inputs, [True])
    with pytest.warns(PathmixWarning, match="Bessel"):
        in_jax(flatten(lambda x: [Bessel.apply(x)], inputs), inputs, [True])


@pytest.mark.filterwarnings("ignore::pathmix.PathmixWarning")
def test_a_program_may_look_at_numbers_inside():
    """What the function looks at is no decision; what is made of its result may be one."""

    def model(y):
        x = pyro.sample("x", dist.Uniform(0.0, 6.0))
        mean = Bessel.apply(x)
        if mean > 0.2:
            mean = pyro.sample("mean", dist.Normal(mean, 1.0))
        pyro.sample("y", dist.Normal(mean, 0.1), obs=y)

    found = discover(model, torch.tensor(0.4), samples=50)
    assert {path.slp.path.addresses for path in found.paths} == {("x",), ("x", "mean")}
