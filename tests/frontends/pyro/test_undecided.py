"""Which discrete sites have a say, where the values that a run looked at do not tell."""

import pyro
import pyro.distributions as dist
import torch

from pathmix.frontends.pyro import undecided
from tests.paths import discover


def counted(monkeypatch, model):
    """The paths found, and of how many courses it was asked which sites have a say."""
    asked, ask = [], undecided.deciding_sites

    def deciding_sites(*args):
        asked.append(args)
        return ask(*args)

    monkeypatch.setattr(undecided, "deciding_sites", deciding_sites)
    return discover(model, samples=400).paths, len(asked)


def chosen(number):
    """It decides by a tensor made of its value, of which a run does not know where it comes from."""
    return "+*"[pyro.sample(f"op_{number}", dist.Bernoulli(torch.tensor(0.5))).long()]


def test_sites_of_a_place_that_always_have_a_say_are_not_asked_about_for_ever(monkeypatch):
    def model():
        count = int(pyro.sample("n", dist.Categorical(torch.ones(40) / 40)))
        sign = 1.0 if chosen(count) == "+" else -1.0
        pyro.sample("y", dist.Normal(torch.tensor(sign), 1.0), obs=torch.tensor(0.4))

    paths, asked = counted(monkeypatch, model)
    assert len(paths) == 80
    assert asked == undecided._OFTEN


def test_others_are(monkeypatch):
    """Sites that have a say at first and none later are asked about, from the first that has none."""

    def model():
        count = int(pyro.sample("n", dist.Categorical(torch.ones(40) / 40)))
        with pyro.plate("points", 12):
            signs = pyro.sample("signs", dist.Bernoulli(torch.tensor(0.5)))
        mean = signs * 2.0 if count else signs * (1.0 if "+*"[signs[0].long()] == "+" else 3.0)
        with pyro.plate("data", 12):
            pyro.sample("y", dist.Normal(mean, 1.0), obs=torch.linspace(-1, 1, 12).to(mean))

    paths, asked = counted(monkeypatch, model)
    assert asked > 2 * undecided._OFTEN
    assert sum(path.slp.path.summed == ("signs",) for path in paths) == 39
