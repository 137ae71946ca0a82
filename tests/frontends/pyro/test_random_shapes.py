"""How many elements there are decides, though Python looks at nothing but the shape."""

import itertools

import numpy as np
import pyro
import pyro.distributions as dist
import pytest
import torch
from scipy import stats
from scipy.special import logsumexp

import pathmix
from pathmix.errors import ProgramError
from tests import exact

PRIOR = np.array([0.5, 0.3, 0.2])
SHAPES = {
    "nonzero": lambda z: z.nonzero().shape[0],
    "argwhere": lambda z: len(torch.argwhere(z)),
    "where": lambda z: torch.where(z > 0)[0].numel(),
    "mask": lambda z: len(torch.arange(3)[z > 0]),
    "masked_select": lambda z: torch.masked_select(torch.arange(3), z > 0).numel(),
    "unique": lambda z: len(torch.unique(z)),
    "unique_consecutive": lambda z: len(torch.unique_consecutive(z)),
    "unique along an axis": lambda z: torch.unique(z[:, None], dim=0).size(0),
    "repeat_interleave": lambda z: torch.repeat_interleave(torch.arange(3), z).numel(),
    "bincount": lambda z: torch.bincount(z).numel(),
    "summed over": lambda z: torch.ones(3)[z > 0].sum(),
}


@pytest.mark.parametrize("form", SHAPES)
def test_discrete_sites_decide_the_shape(form):
    def model(y):
        with pyro.plate("rows", 3):
            z = pyro.sample("z", dist.Categorical(torch.tensor(PRIOR)))
        pyro.sample("y", dist.Normal(1.0 * SHAPES[form](z), 0.5), obs=y)

    settings = list(itertools.product(range(3), repeat=3))
    sizes = [float(SHAPES[form](torch.tensor(z))) for z in settings]
    logs = [
        np.log(PRIOR[list(z)]).sum() + stats.norm.logpdf(1.3, size, 0.5)
        for z, size in zip(settings, sizes, strict=True)
    ]
    posterior = exact.fit(model, torch.tensor(1.3, dtype=torch.float64), discovery=pathmix.Enumeration())
    assert len(posterior.paths) == 27
    assert posterior.log_evidence == pytest.approx(logsumexp(logs), abs=1e-8)


@pytest.mark.parametrize("form", SHAPES)
def test_continuous_sites_may_not(form):
    def model(y):
        x = pyro.sample("x", dist.Normal(0.0, 1.0).expand([3]).to_event(1))
        pyro.sample("y", dist.Normal(1.0 * SHAPES[form](x.abs().long()), 0.5), obs=y)

    with pytest.raises(
        ProgramError, match=r"shape of what PyTorch gives at test_random_shapes.py:\d+ depends on 'x'"
    ):
        pathmix.SDVI(model, progress=False).run(0, torch.tensor(1.3, dtype=torch.float64))
