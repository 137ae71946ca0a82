"""States as rows of zeros with a one: however a program makes them, they decide nothing."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as npd
import pyro
import pyro.distributions as pyd
import pytest
import torch
import torch.nn.functional as F
from scipy import stats
from scipy.special import logsumexp

import pathmix
from tests import exact
from tests.summation import models

Y = np.array([-1.2, 0.2, 1.7, -0.4, 2.2, 1.9])
SEEN = stats.norm.logpdf(Y[:, None], models.LEVELS, 0.6)
MIXED = np.sum(logsumexp(np.log(models.SIZES) + SEEN, axis=1))


def fitted(model, y):
    posterior = exact.fit(model, y, discovery=pathmix.PriorDiscovery(20))
    assert [path.label for path in posterior.paths] == ["always"]
    return posterior.log_evidence


def written(z):
    hot = torch.zeros(len(Y), 3)
    hot[torch.arange(len(Y)), z] = 1.0
    return hot


IN_PYRO = {
    "one_hot": lambda z: F.one_hot(z, 3).double(),
    "by name": lambda z: torch.nn.functional.one_hot(z, num_classes=3).double(),
    "scatter": lambda z: torch.zeros(len(Y), 3).scatter(-1, z[:, None], 1.0),
    "scatter_": lambda z: torch.zeros(len(Y), 3).scatter_(-1, z.unsqueeze(-1), torch.ones(len(Y), 1)),
    "scatter_add": lambda z: torch.zeros(len(Y), 3).scatter_add(-1, z[:, None], torch.ones(len(Y), 1)),
    "written": written,
}


@pytest.mark.parametrize("form", IN_PYRO)
def test_in_a_plate_of_pyro(form):
    def model(y):
        with pyro.plate("rows", len(y)):
            z = pyro.sample("z", pyd.Categorical(torch.tensor(models.SIZES)))
            pyro.sample("y", pyd.Normal(IN_PYRO[form](z) @ torch.tensor(models.LEVELS), 0.6), obs=y)

    assert fitted(model, torch.tensor(Y)) == pytest.approx(MIXED, abs=1e-8)


IN_NUMPYRO = {
    "one_hot": lambda z: jax.nn.one_hot(z, 3),
    "set": lambda z: jnp.zeros((len(Y), 3)).at[jnp.arange(len(Y)), z].set(1.0),
    "add": lambda z: jnp.zeros((len(Y), 3)).at[jnp.arange(len(Y)), z].add(1.0),
    "along": lambda z: jnp.put_along_axis(jnp.zeros((len(Y), 3)), z[:, None], 1.0, -1, inplace=False),
    "vmap": jax.vmap(lambda z: jnp.zeros(3).at[z].set(1.0)),
}


@pytest.mark.parametrize("form", IN_NUMPYRO)
def test_in_a_plate_of_numpyro(form):
    def model(y):
        with numpyro.plate("rows", len(y)):
            z = numpyro.sample("z", npd.Categorical(probs=jnp.asarray(models.SIZES)))
            numpyro.sample("y", npd.Normal(IN_NUMPYRO[form](z) @ jnp.asarray(models.LEVELS), 0.6), obs=y)

    assert fitted(model, Y) == pytest.approx(MIXED, abs=1e-8)


def test_in_a_chain():
    def model(y):
        z, first, following = None, torch.tensor(models.FIRST), torch.tensor(models.NEXT)
        for t in range(len(y)):
            logits = first.log() if z is None else F.one_hot(z, 3).double() @ following.log()
            z = pyro.sample(f"z_{t}", pyd.Categorical(logits=logits))
            pyro.sample(f"y_{t}", pyd.Normal(torch.tensor(models.LEVELS)[z], 1.0), obs=y[t])

    y = models.SERIES[:5]
    assert fitted(model, torch.tensor(y)) == pytest.approx(models.forward(y), abs=1e-8)


def test_values_that_one_hot_refuses_are_left_out():
    """A run that has one fails."""

    def model(y):
        with pyro.plate("rows", len(y)):
            z = pyro.sample("z", pyd.Categorical(torch.tensor([0.3, 0.3, 0.3, 0.1])))
            pyro.sample("y", pyd.Normal(F.one_hot(z, 3).double() @ torch.tensor(models.LEVELS), 0.6), obs=y)

    with pytest.warns(pathmix.PathmixWarning, match="runs that do not fail"):
        found = fitted(model, torch.tensor(Y))
    assert found == pytest.approx(np.sum(logsumexp(np.log(0.3) + SEEN, axis=1)), abs=1e-8)


def test_as_many_columns_as_the_largest_value_says_is_a_decision():
    def model():
        z = torch.stack([pyro.sample(f"z_{i}", pyd.Bernoulli(torch.tensor(0.4))) for i in range(3)])
        columns = F.one_hot(z.long()).shape[1]
        pyro.sample("y", pyd.Normal(torch.tensor(1.0 * columns), 1.0), obs=torch.tensor(1.5))

    posterior = exact.fit(model, discovery=pathmix.Enumeration())
    logs = np.log([0.6**3, 1 - 0.6**3]) + stats.norm.logpdf(1.5, [1, 2], 1)
    assert len(posterior.paths) == 8
    assert posterior.log_evidence == pytest.approx(logsumexp(logs), abs=1e-8)
