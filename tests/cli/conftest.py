"""Files as users have them, and a way to run commands on them in this process."""

import sys
from pathlib import Path

import pytest

from pathmix.cli.main import main

NUMPYRO = """
import numpyro
import numpyro.distributions as dist


def model(y, scale=2.0):
    x = numpyro.sample("x", dist.Normal(0, 1))
    if x < 0:
        z = numpyro.sample("z1", dist.Normal(-3, 1))
    else:
        z = numpyro.sample("z2", dist.Normal(3, 1))
    numpyro.sample("y", dist.Normal(z, scale), obs=y)


def side(path):
    return "left" if "z1" in path.addresses else "right"


number = 3
"""

PYRO = """
import pyro
import pyro.distributions as dist
import torch


def model(y):
    k = int(pyro.sample("k", dist.Categorical(torch.ones(2))))
    z = pyro.sample("z", dist.Normal(torch.ones(2), 1.0).to_event(1))
    with pyro.plate("data", len(y)):
        pyro.sample("y", dist.Normal(y.new_ones(len(y), 2) @ z * k, 2.0), obs=y)
"""


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """A folder to work in, with models and data; what is imported from it is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    Path("model.py").write_text(NUMPYRO)
    Path("torch_model.py").write_text(PYRO)
    Path("data.csv").write_text("y\n1.5\n2\n2.5\n")
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.fixture
def cli(capsys):
    """Runs a command; gives its exit status, and what it wrote on both streams."""

    def run(*words):
        try:
            status = main([str(word) for word in words])
        except SystemExit as error:
            status = error.code
        return status, *capsys.readouterr()

    return run
