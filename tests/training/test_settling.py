"""Paths stop training when further steps would bring next to nothing."""

import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

import pathmix
from pathmix.training.settling import could_bring
from tests import exact


@pytest.mark.parametrize("noise", [0.0, 0.3])
@pytest.mark.parametrize("slope", [1e-5, 1e-4])
def test_what_is_left_is_not_underestimated(slope, noise):
    """A rise that goes on as before brings at most what is said, in all of fifty histories."""
    for seed in range(50):
        drawn = noise * np.random.default_rng(seed).standard_normal(6_000)
        assert could_bring(slope * np.arange(6_000) + drawn, 20_000) >= 0.9 * slope * 20_000


def test_noise_and_lost_steps_keep_it_going():
    noisy = 3.0 * np.random.default_rng(0).standard_normal(3_000)
    assert could_bring(noisy, 50_000) > 1.0
    assert could_bring(np.where(np.arange(3_000) % 20 == 0, np.nan, 0.0), 50_000) == np.inf


def model(y):
    mean = numpyro.sample("mean", dist.Normal(0, 1))
    if mean > 0:
        numpyro.sample("y", dist.Normal(mean, 1), obs=y)
    else:
        numpyro.sample("y", dist.Normal(2 * mean, 1), obs=y)


def test_the_answer_is_that_of_all_steps():
    whole, short = (exact.fit(model, 0.5, budget=40_000, stop_early=stops) for stops in (False, True))
    assert sum(path.steps for path in whole.paths) == 40_000
    assert sum(path.steps for path in short.paths) < 25_000
    assert short.log_evidence == pytest.approx(whole.log_evidence, abs=0.01)
    for label, elbo in {path.label: path.elbo for path in whole.paths}.items():
        (other,) = (path.elbo for path in short.paths if path.label == label)
        assert other == pytest.approx(elbo, abs=0.05)


def test_what_is_left_goes_to_others():
    """Of a path with a flat density, and one that is hard."""

    def uneven(y):
        if numpyro.sample("hard", dist.Bernoulli(0.5)):
            scale = numpyro.sample("scale", dist.HalfCauchy(1.0))
            numpyro.sample("effect", dist.Normal(0, scale).expand([8]).to_event(1))
        else:
            numpyro.sample("easy", dist.Normal(0, 1))
        numpyro.sample("y", dist.Normal(0, 1), obs=y)

    allocation = pathmix.SuccessiveHalving(budget=60_000, keep=1)
    steps = {
        path.label: path.steps
        for path in exact.fit(uneven, 0.0, allocation=allocation, starts=1, guide="meanfield").paths
    }
    assert steps["hard=0"] < 15_000  # half of its share
    assert steps["hard=0"] + steps["hard=1"] <= 60_000
