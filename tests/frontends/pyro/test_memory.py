"""Ways to the numbers of a tensor that go past PyTorch's methods: through its memory."""

import pickle

import numpy as np
import pyro
import pyro.distributions as dist
import pytest
import torch
from scipy import stats
from scipy.special import logsumexp

import pathmix
from pathmix.errors import ContinuousDecisionError
from tests import exact

LEVELS, PRIOR = [-1.0, 0.5, 2.0], [0.5, 0.3, 0.2]
WAYS = {
    "DLPack": np.from_dlpack,
    "storage": lambda x: x.clone().untyped_storage().tolist()[0],
    "pickle": lambda x: pickle.loads(pickle.dumps(x)).item(),
}


@pytest.mark.parametrize("way", WAYS)
def test_discrete_values_decide(way):
    def model(y):
        z = pyro.sample("z", dist.Categorical(torch.tensor(PRIOR)))
        pyro.sample("y", dist.Normal(LEVELS[int(WAYS[way](z))], 0.5), obs=y)

    posterior = exact.fit(model, torch.tensor(0.8, dtype=torch.float64), discovery=pathmix.PriorDiscovery(40))
    assert len(posterior.paths) == 3
    expected = logsumexp(np.log(PRIOR) + stats.norm.logpdf(0.8, LEVELS, 0.5))
    assert posterior.log_evidence == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("way", WAYS)
def test_continuous_values_may_not(way):
    def model(y):
        x = pyro.sample("x", dist.Normal(0.0, 1.0))
        pyro.sample("y", dist.Normal(float(WAYS[way](x)), 0.5), obs=y)

    with pytest.raises(ContinuousDecisionError, match=r"test_memory.py:\d+.*depends on 'x'"):
        exact.fit(model, torch.tensor(0.8))
