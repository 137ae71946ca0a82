"""`float(x)` of a continuous value that is returned, shown, compared or computed with."""

import math
from functools import partial
from numbers import Real

import numpy as np
import pyro
import pyro.distributions as dist
import pytest
import torch
from scipy import integrate, stats

import pathmix
from pathmix import errors
from pathmix.frontends.pyro import floats
from pathmix.frontends.pyro.texts import MARK
from tests import exact

Y = torch.tensor(1.5)
SHOWN, PLAIN = [], []


def warmed(temperature):
    return 2.0 * float(temperature)


def model(y):
    x = float(pyro.sample("x", dist.Normal(0.0, 1.0)))
    SHOWN.append(f"{x:.2f}")
    PLAIN[:] = [float("inf"), float(3), float(y)]
    if x > 0.5:
        m = pyro.sample("m", dist.Normal(x, 1.0))
    else:
        m = torch.tensor(warmed(x))
    pyro.sample("y", dist.Normal(m, 1.0), obs=y)
    return x, float(m)


class Network(torch.nn.Module):
    def forward(self, y):
        return model(y)


def log_evidence():
    def over(x):
        return stats.norm.pdf(x) * stats.norm.pdf(1.5, x, math.sqrt(2)) if x > 0.5 else 0.0

    def under(x):
        return stats.norm.pdf(x) * stats.norm.pdf(1.5, 2 * x, 1)

    return math.log(integrate.quad(over, 0.5, 10)[0] + integrate.quad(under, -10, 0.5)[0])


def test_it_stays_random():
    posterior = exact.fit(model, Y, budget=4_000)
    assert len(posterior.paths) == 2
    assert posterior.log_evidence == pytest.approx(log_evidence(), abs=0.01)
    assert all(isinstance(number, Real) for number in PLAIN) and sum(PLAIN[1:]) == 4.5
    assert all(text.startswith(MARK) and float(text.strip(MARK)) for text in SHOWN)
    assert "float" not in globals()


def of(model):
    discovery, allocation = pathmix.PriorDiscovery(50), pathmix.Uniform(20)
    return pathmix.SDVI(model, discovery=discovery, allocation=allocation, progress=False)


@pytest.mark.parametrize("same", [partial(model, Y), lambda: model(Y), lambda: Network()(Y)])
def test_in_functions_of_every_kind(same):
    assert len(of(same).run(0).paths) == 2


def test_what_needs_a_number_is_still_an_error():
    def exponential():
        x = pyro.sample("x", dist.Normal(0.0, 1.0))
        pyro.sample("y", dist.Normal(math.exp(float(x)), 1.0), obs=Y)

    with pytest.raises(errors.ContinuousDecisionError, match=r"test_floats.py:\d+.*depends on 'x'"):
        of(exponential).run(0)


NEEDS_A_NUMBER = {
    "numpy": lambda x: torch.as_tensor(np.array([0.5, 1.5]) * float(x)).sum(),
    "round": lambda x: torch.tensor(float(round(float(x)))),
    "method": lambda x: torch.tensor(1.0 if float(x).is_integer() else 0.0),
    "item": lambda x: torch.tensor(float(x.item().is_integer())),
    "text": lambda x: torch.tensor(float(f"{float(x):.3f}")),
}


@pytest.mark.parametrize("name", NEEDS_A_NUMBER)
def test_a_path_is_not_given_up_for_a_number_that_it_did_not_get(name):
    def either():
        x = pyro.sample("x", dist.Normal(0.0, 1.0))
        mean = NEEDS_A_NUMBER[name](x) if pyro.sample("b", dist.Bernoulli(0.5)) else x
        pyro.sample("y", dist.Normal(mean, 1.0), obs=Y)

    with pytest.raises(errors.ContinuousDecisionError, match=r"test_floats.py:\d+.*depends on 'x'"):
        of(either).run(0)


def module(source):
    """The functions of a program in a module of its own."""
    names = {"pyro": pyro, "dist": dist, "torch": torch, "np": np}
    exec(source, names)
    return names


def test_a_module_that_uses_the_name_for_more_keeps_its_own():
    names = module(
        "def model(y):\n"
        "    x = pyro.sample('x', dist.Normal(torch.zeros((), dtype=float), 1.0))\n"
        "    pyro.sample('y', dist.Normal(float(x), 1.0), obs=y)\n"
    )
    with floats.random_floats(names["model"]):
        assert "float" not in names
    names = module("float = int\ndef model(y):\n    return float(y)\n")
    with floats.random_floats(names["model"]):
        assert names["float"] is int


def test_the_name_is_put_back_after_an_error():
    names = module("def model():\n    raise ValueError(float(1))\n")
    with pytest.raises(ValueError, match=r"1\.0"), floats.random_floats(names["model"]):
        names["model"]()
    assert "float" not in names
