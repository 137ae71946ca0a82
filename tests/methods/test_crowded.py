"""More paths than the budget can train: a first look takes the place of training."""

import numpy as np
import numpyro
import numpyro.distributions as dist
import pyro
import pytest
import torch
from scipy import stats

import pathmix

PATHS = 520  # each has less than 0.2% of the weight


def numpyro_crowd(y):
    k = int(numpyro.sample("k", dist.Categorical(probs=np.full(PATHS, 1 / PATHS))))
    z = numpyro.sample("z", dist.Normal(k / 1_000, 1.0))
    numpyro.sample("y", dist.Normal(z, 0.5), obs=y)


def pyro_crowd(y):
    k = int(pyro.sample("k", pyro.distributions.Categorical(torch.full((PATHS,), 1 / PATHS))))
    z = pyro.sample("z", pyro.distributions.Normal(k / 1_000, 1.0))
    pyro.sample("y", pyro.distributions.Normal(z, 0.5), obs=y)


def crowd(model, **options):
    """Less than ten steps for each path, in a first phase of training."""
    return pathmix.SDVI(
        model,
        discovery=pathmix.PriorDiscovery(8 * PATHS),
        allocation=pathmix.SuccessiveHalving(budget=300),
        progress=False,
        **options,
    )


@pytest.mark.parametrize(("model", "y"), [(numpyro_crowd, 0.26), (pyro_crowd, torch.tensor(0.26))])
def test_what_a_look_settles_is_not_trained(model, y):
    posterior = crowd(model).run(0, y)
    k = np.array([path.pinned["k"] for path in posterior.paths])
    evidences = stats.norm(k / 1_000, np.sqrt(1.25)).pdf(0.26) / PATHS
    assert posterior.log_evidence == pytest.approx(np.log(evidences.sum()), abs=0.005)
    found = np.array([path.weight for path in posterior.paths])
    assert 0.5 * np.abs(found - evidences / evidences.sum()).sum() < 0.01
    assert all(path.steps == 0 and path.status is pathmix.Status.OK for path in posterior.paths)
    assert posterior.timings.structures == 1 and posterior.timings.training < 1.0
    draws = posterior.sample(0, 4_000)
    mean = k / 1_000 + 0.8 * (0.26 - k / 1_000)
    exact = mean @ evidences / evidences.sum()
    assert np.mean(draws["z"]) == pytest.approx(exact, abs=4 * np.std(draws["z"]) / np.sqrt(4_000))


def test_weights_by_elbo_need_guides():
    def model(y):
        k = int(numpyro.sample("k", dist.Categorical(probs=np.full(20, 1 / 20))))
        z = numpyro.sample("z", dist.Normal(k / 10, 1.0))
        numpyro.sample("y", dist.Normal(z, 0.5), obs=y)

    posterior = crowd(model, weights="elbo").run(0, 1.3)
    assert all(path.steps > 0 and np.isfinite(path.elbo) for path in posterior.paths)
