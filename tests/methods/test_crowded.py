"""More paths than the budget can train: a first look takes the place of training."""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pyro
import pytest
import torch
from scipy import stats

import pathmix
from pathmix.methods import scouting

PATHS = 60  # each has less than 2% of the weight, as far as a first look can tell


def numpyro_crowd(y):
    k = int(numpyro.sample("k", dist.Categorical(probs=np.full(PATHS, 1 / PATHS))))
    z = numpyro.sample("z", dist.Normal(k / 100, 1.0))
    numpyro.sample("y", dist.Normal(z, 0.5), obs=y)


def pyro_crowd(y):
    k = int(pyro.sample("k", pyro.distributions.Categorical(torch.full((PATHS,), 1 / PATHS))))
    z = pyro.sample("z", pyro.distributions.Normal(k / 100, 1.0))
    pyro.sample("y", pyro.distributions.Normal(z, 0.5), obs=y)


def crowd(model, budget=300, **options):
    """Less than a hundred steps for each path, in a first phase of training."""
    return pathmix.SDVI(
        model,
        discovery=pathmix.PriorDiscovery(8 * PATHS),
        allocation=pathmix.SuccessiveHalving(budget=budget),
        progress=False,
        **options,
    )


@pytest.mark.parametrize(("model", "y"), [(numpyro_crowd, 0.26), (pyro_crowd, torch.tensor(0.26))])
def test_what_a_look_settles_is_not_trained(model, y, monkeypatch):
    monkeypatch.setattr("pathmix.methods.claims.NEGLIGIBLE", 0.02)
    posterior = crowd(model).run(0, y)
    k = np.array([path.pinned["k"] for path in posterior.paths])
    evidences = stats.norm(k / 100, np.sqrt(1.25)).pdf(0.26) / PATHS
    assert posterior.log_evidence == pytest.approx(np.log(evidences.sum()), abs=0.005)
    found = np.array([path.weight for path in posterior.paths])
    assert 0.5 * np.abs(found - evidences / evidences.sum()).sum() < 0.01
    assert all(path.steps == 0 and path.status is pathmix.Status.OK for path in posterior.paths)
    assert posterior.timings.structures == 1
    draws = posterior.sample(0, 4_000)
    mean = k / 100 + 0.8 * (0.26 - k / 100)
    exact = mean @ evidences / evidences.sum()
    assert np.mean(draws["z"]) == pytest.approx(exact, abs=4 * np.std(draws["z"]) / np.sqrt(4_000))


def test_weights_by_elbo_need_guides():
    def model(y):
        k = int(numpyro.sample("k", dist.Categorical(probs=np.full(20, 1 / 20))))
        z = numpyro.sample("z", dist.Normal(k / 10, 1.0))
        numpyro.sample("y", dist.Normal(z, 0.5), obs=y)

    posterior = crowd(model, weights="elbo").run(0, 1.3)
    assert all(path.steps > 0 and np.isfinite(path.elbo) for path in posterior.paths)


def test_paths_without_free_sites_keep_their_weight():
    """Nothing can be looked at there, and nothing is trained; enumerated ones have no prior runs either."""

    def model(y):
        k = int(numpyro.sample("k", dist.Categorical(probs=np.full(40, 1 / 40))))
        z = numpyro.sample("z", dist.Normal(k / 10, 1.0)) if k % 2 else k / 10
        numpyro.sample("y", dist.Normal(z, 0.5), obs=y)

    posterior = pathmix.SDVI(
        model,
        discovery=pathmix.Enumeration(10, cover=1.0),
        allocation=pathmix.SuccessiveHalving(budget=200),
        progress=False,
    ).run(0, 1.3)
    k = np.arange(40)
    evidences = stats.norm(k / 10, np.where(k % 2, np.sqrt(1.25), 0.5)).pdf(1.3) / 40
    found = {path.pinned["k"]: path.weight for path in posterior.paths}
    assert posterior.log_evidence == pytest.approx(np.log(evidences.sum()), abs=0.02)
    assert [found[i] for i in k] == pytest.approx(evidences / evidences.sum(), abs=0.005)


def test_a_density_that_is_nan_is_told_of(monkeypatch):
    monkeypatch.setattr("pathmix.methods.claims.NEGLIGIBLE", 0.3)

    def model(y):
        k = int(numpyro.sample("k", dist.Categorical(probs=np.full(10, 1 / 10))))
        z = numpyro.sample("z", dist.Normal(k / 10, 1.0))
        numpyro.sample("y", dist.Normal(jnp.log(z) if k < 5 else z, 0.5), obs=y)

    posterior = crowd(model, budget=50).run(0, 0.3)
    of = {path.pinned["k"]: path for path in posterior.paths}
    assert all(of[k].status is pathmix.Status.NAN and of[k].weight == 0 for k in range(5))
    assert all(of[k].steps == 0 and of[k].weight > 0.1 for k in range(5, 10))


def test_what_was_trained_is_not_looked_at_anew(monkeypatch):
    monkeypatch.setattr("pathmix.methods.claims.NEGLIGIBLE", 0.9)
    inference = pathmix.SDVI(three_levels, allocation=pathmix.SuccessiveHalving(budget=3_000), progress=False)
    before = inference.run(0, 0.3)
    after = inference.resume(before, budget=20)
    steps = {path.label: path.steps for path in before.paths}
    assert all(path.steps >= steps[path.label] > 0 for path in after.paths)


def three_levels(y):
    k = int(numpyro.sample("k", dist.Categorical(probs=np.ones(3) / 3)))
    z = numpyro.sample(f"z{k}", dist.Normal(k, 1.0))
    numpyro.sample("y", dist.Normal(z, 0.5), obs=y)


def test_ctrl_c_among_first_looks(monkeypatch):
    """What was looked at is kept, with its evidence; the rest carries no weight, and that is told."""
    monkeypatch.setattr("pathmix.methods.claims.NEGLIGIBLE", 0.02)
    monkeypatch.setattr(scouting, "_CHUNK", 20)
    look_at, looks = scouting.Scouting._look_at, []

    def interrupted(self, new, **options):
        look_at(self, new, **options)
        looks.append(len(new))
        if len(looks) == 2:
            self.workshop.executor.stopping.set()  # as Ctrl-C does

    monkeypatch.setattr(scouting.Scouting, "_look_at", interrupted)
    posterior = crowd(numpyro_crowd).run(0, 0.26)
    assert looks == [20, 20] and posterior.interrupted and not posterior.verdict.ok
    seen = [path for path in posterior.paths if path.weight > 0]
    k = np.array([path.pinned["k"] for path in seen])
    evidences = stats.norm(k / 100, np.sqrt(1.25)).logpdf(0.26) - np.log(PATHS)
    assert len(seen) == 40 and [path.log_evidence for path in seen] == pytest.approx(evidences, abs=0.05)
    assert np.all(np.isfinite(posterior.sample(0, 10)["z"]))
