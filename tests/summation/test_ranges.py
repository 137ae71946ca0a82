"""Look-ups by numbers that PyTorch does not take: such runs fail, and fitted paths leave them out too."""

from contextlib import nullcontext

import numpy as np
import pyro
import pyro.distributions as pyd
import pytest
import torch
import torch.nn.functional as F
from pyro.ops.indexing import Vindex
from scipy import stats
from scipy.special import logsumexp

import pathmix
from tests import exact
from tests.summation import models

Y = np.array([-1.2, 0.2, 1.7])
LEVELS = torch.tensor(models.LEVELS, dtype=torch.float64)
PRIOR = np.array([0.3, 0.2, 0.1, 0.4])
EXACT = np.sum(logsumexp(np.log(PRIOR[:3]) + stats.norm.logpdf(Y[:, None], models.LEVELS, 0.6), axis=1))


def filled(z):
    return (torch.zeros(3).index_fill(0, z, 1.0) * LEVELS).sum()


def put(z):
    return (torch.zeros(3).index_put(indices=(z,), values=torch.tensor(1.0)) * LEVELS).sum()


def written(z):
    kept = torch.zeros(3)
    kept[z] = 1.0
    return (kept * LEVELS).sum()


LOOKUPS = {
    "x[z]": lambda z: LEVELS[z],
    "x[..., z, None]": lambda z: LEVELS.expand(2, 3)[..., z, None][0, ..., 0],
    "x[0, z]": lambda z: LEVELS[None][0, z],
    "x[mask, z]": lambda z: LEVELS.expand(2, 3)[torch.tensor([False, True])][0, z],
    "from the end": lambda z: LEVELS.flip(0)[-z - 1],
    "Vindex": lambda z: Vindex(LEVELS[None])[0, z],
    "gather": lambda z: LEVELS.gather(dim=0, index=z.reshape(-1)).reshape(z.shape),
    "take": lambda z: torch.take(LEVELS, z),
    "take_along_dim": lambda z: torch.take_along_dim(LEVELS, z.reshape(-1)).reshape(z.shape),
    "index_select": lambda z: torch.index_select(LEVELS, -1, z.reshape(-1)).reshape(z.shape),
    "embedding": lambda z: F.embedding(z, LEVELS[:, None])[..., 0],
    "module": lambda z: torch.nn.Embedding.from_pretrained(LEVELS[:, None])(z)[..., 0],
    "vmap": torch.vmap(lambda k: LEVELS[k]),
    "nll_loss": lambda z: -F.nll_loss(LEVELS.expand(len(z), 3), z, reduction="none"),
    "scatter": lambda z: torch.zeros(*z.shape, 3).scatter(-1, z[..., None], 1.0).double() @ LEVELS,
}


@pytest.mark.parametrize("form", LOOKUPS)
def test_numbers_out_of_range_have_no_share(form):
    def model(y):
        with pyro.plate("rows", len(y)):
            z = pyro.sample("z", pyd.Categorical(torch.tensor(PRIOR)))
            pyro.sample("y", pyd.Normal(LOOKUPS[form](z), 0.6), obs=y)

    assert fitted(model) == pytest.approx(EXACT, abs=1e-8)


def test_numbers_that_start_again_at_the_end_are_all_in_range():
    def model(y):
        with pyro.plate("rows", len(y)):
            z = pyro.sample("z", pyd.Categorical(torch.tensor(PRIOR)))
            level = torch.take_along_dim(LEVELS, z.reshape(-1), 0).reshape(z.shape)
            pyro.sample("y", pyd.Normal(level, 0.6), obs=y)

    seen = stats.norm.logpdf(Y[:, None], np.array(models.LEVELS)[[0, 1, 2, 0]], 0.6)
    posterior = exact.fit(model, torch.tensor(Y), discovery=pathmix.PriorDiscovery(40))
    assert posterior.log_evidence == pytest.approx(np.sum(logsumexp(np.log(PRIOR) + seen, axis=1)), abs=1e-8)


@pytest.mark.parametrize("write", [filled, put, written])
def test_parts_that_are_written(write):
    def model(y):
        for i in range(len(y)):
            z = pyro.sample(f"z_{i}", pyd.Categorical(torch.tensor(PRIOR)))
            pyro.sample(f"y_{i}", pyd.Normal(write(z), 0.6), obs=y[i])

    assert fitted(model) == pytest.approx(EXACT, abs=1e-8)


def test_counts_without_an_end():
    def model(y):
        with pyro.plate("rows", len(y)):
            z = pyro.sample("z", pyd.Poisson(0.5)).long()
            pyro.sample("y", pyd.Normal(LEVELS[z], 0.6), obs=y)

    terms = stats.poisson.logpmf(np.arange(3), 0.5) + stats.norm.logpdf(Y[:, None], models.LEVELS, 0.6)
    assert fitted(model) == pytest.approx(np.sum(logsumexp(terms, axis=1)), abs=1e-8)


@pytest.mark.parametrize("axis", [(), (3,)])
def test_indices_made_of_continuous_values(axis):
    y = torch.tensor(Y)[: len(axis) * 3 or 1].reshape(axis)

    def model():
        with pyro.plate("rows", 3) if axis else nullcontext():
            u = pyro.sample("u", pyd.Uniform(torch.tensor(0.0), 1.0))
            pyro.sample("y", pyd.Normal(LEVELS[(4 * u).long()], 0.6), obs=y)

    with pytest.warns(pathmix.PathmixWarning, match="runs that do not fail"):
        posterior = pathmix.SDVI(model, allocation=pathmix.Uniform(4000), progress=False).run(0)
    terms = np.log(0.25) + stats.norm.logpdf(y.numpy().reshape(-1, 1), models.LEVELS, 0.6)
    expected, error = np.sum(logsumexp(terms, axis=1)), posterior.log_evidence_error
    assert error < 0.05
    assert posterior.log_evidence == pytest.approx(expected, abs=4 * error)


def fitted(model):
    with pytest.warns(pathmix.PathmixWarning, match="runs that do not fail"):
        posterior = exact.fit(model, torch.tensor(Y), discovery=pathmix.PriorDiscovery(40))
    assert [path.label for path in posterior.paths] == ["always"]
    return posterior.log_evidence
