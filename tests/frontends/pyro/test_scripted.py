"""Functions compiled by `torch.jit.script`. PyTorch ends the process where one looks up by a traced index."""

import numpy as np
import pyro
import pyro.distributions as pyd
import pytest
import torch
from scipy import stats
from scipy.special import logsumexp

import pathmix
from tests import exact

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")

LEVELS = torch.tensor([-1.0, 0.5, 2.0], dtype=torch.float64)
Y = np.array([-1.2, 0.2, 1.7])


class Table(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("levels", LEVELS)

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        return self.levels[z]


def look_up(levels: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
    return levels[z]


def model(levels_of):
    with pyro.plate("rows", len(Y)):
        z = pyro.sample("z", pyd.Categorical(torch.ones(3, dtype=torch.float64)))
        pyro.sample("y", pyd.Normal(levels_of(z), 0.6), obs=torch.tensor(Y))


@pytest.mark.parametrize("compiled", ["script", "trace"])
def test_a_function(compiled):
    if compiled == "script":
        function = torch.jit.script(look_up)
    else:
        function = torch.jit.trace(look_up, (LEVELS, torch.zeros(3, dtype=torch.long)))
    expected = np.sum(logsumexp(stats.norm.logpdf(Y[:, None], LEVELS.numpy(), 0.6) - np.log(3), axis=1))
    found = exact.fit(model, lambda z: function(LEVELS, z)).log_evidence
    assert found == pytest.approx(expected, abs=1e-8)


def test_a_module_is_refused():
    with pytest.raises(pathmix.errors.ProgramError, match=r"test_scripted.py:\d+ has look-ups by a tensor"):
        exact.fit(model, torch.jit.script(Table()))
