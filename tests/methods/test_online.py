"""Halving again and again, with discovery in between (the paper's online algorithm)."""

import math

import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy import stats

import pathmix
from pathmix.allocation import Candidate, Round
from pathmix.errors import OptionError
from tests import exact
from tests.zoo import programs, pyro_programs

ONLINE = pathmix.OnlineSuccessiveHalving


def test_paths_are_ranked_by_what_they_promise_for_the_iterations_they_had():
    """exp(alpha L) / t: 4 nats below, but a thousandth of the iterations, is better for alpha = 1."""
    allocation = ONLINE(100, keep=1, alpha=1.0)
    elbos, steps = [0.0, -4.0, -9.0, -5.0], [1_000, 1, 1, 1_000]
    candidates = [Candidate(i, *row) for i, row in enumerate(zip(elbos, steps, strict=True))]
    rewards = np.exp(elbos) / steps
    assert allocation.survivors(candidates) == np.argsort(-rewards)[:2].tolist() == [1, 0]
    assert ONLINE(100, keep=1, alpha=0.1).survivors(candidates) == [1, 2]
    huge = [Candidate(i, elbo, 10) for i, elbo in enumerate([-1e5, 3e5, math.nan, -math.inf])]
    assert allocation.survivors(huge)[0] == 1


@pytest.mark.parametrize(
    ("options", "rounds", "goes_on"),
    [
        ({"rounds": 3}, [(1.0, 0.0), (2.0, 5.0)], True),
        ({"rounds": 2}, [(1.0, 0.0), (2.0, 5.0)], False),
        ({"seconds": 5.0}, [(3.0, 0.0)], True),
        ({"seconds": 5.0}, [(3.0, 0.0), (6.0, 9.0)], False),
        ({}, [(1.0, 0.0), (2.0, 1.0), (3.0, 1.5)], True),
        ({}, [(1.0, 0.0), (2.0, 1.0), (3.0, 1.0), (4.0, 1.001)], False),
        ({"tolerance": 1e-4}, [(1.0, 0.0), (2.0, 1.0), (3.0, 1.0), (4.0, 1.001)], True),
        ({"tolerance": None}, [(1.0, 0.0)] * 9, True),
        ({}, [(1.0, -math.inf)] * 3, True),
    ],
)
def test_when_it_ends(options, rounds, goes_on):
    assert ONLINE(100, **options).goes_on([Round(*one) for one in rounds]) == goes_on


@pytest.mark.parametrize(
    "options",
    [
        {"budget_per_round": 0},
        {"keep": 0},
        {"alpha": 0},
        {"alpha": 1.5},
        {"rounds": 0},
        {"seconds": -1.0},
        {"tolerance": 0},
    ],
)
def test_wrong_options(options):
    with pytest.raises(OptionError, match=f"OnlineSuccessiveHalving\\({next(iter(options))}=...\\)"):
        ONLINE(**options)


@pytest.mark.parametrize("model", [programs.two_branches, pyro_programs.two_branches])
def test_weights_are_exact(model):
    posterior = exact.fit(model, 2.0, allocation=ONLINE(2_000, rounds=3))
    truth = exact.two_branches(2.0)
    for path in posterior.paths:
        assert path.log_evidence == pytest.approx(truth[path.label], abs=0.02)
    assert sum(path.steps for path in posterior.paths) > 2_000  # more than one round


def test_rounds_find_what_the_first_runs_did_not():
    """Of 20 equal values, four runs see a few; three rounds of four more see others, and train them."""

    def model(y):
        z = numpyro.sample("z", dist.Normal(0.0, 1.0))
        k = int(numpyro.sample("k", dist.DiscreteUniform(0, 19)))
        numpyro.sample("y", dist.Normal(z + k, 1.0), obs=y)

    few = pathmix.PriorDiscovery(4)
    offline = exact.fit(model, 3.0, discovery=few, budget=400, weights="elbo")
    online = exact.fit(model, 3.0, discovery=few, allocation=ONLINE(400, rounds=4))
    assert len(offline.paths) <= 4 < len(online.paths) <= 16
    assert online.discovery.samples == 16
    assert all(path.steps > 0 for path in online.paths)
    for path in online.paths:
        truth = math.log(1 / 20) + stats.norm.logpdf(3.0, path.pinned["k"], math.sqrt(2))
        assert path.log_evidence == pytest.approx(truth, abs=4 * path.log_evidence_error + 1e-3)


def test_fewer_rounds_are_the_beginning_of_more():
    options = {"starts": 1, "weights": "elbo"}
    few, more = (
        exact.fit(programs.two_branches, 2.0, allocation=ONLINE(400, keep=1, rounds=rounds), **options)
        for rounds in (1, 2)
    )
    later = {path.path: path for path in more.paths}
    for path in few.paths:
        assert path.steps < later[path.path].steps
        assert np.array_equal(path.history, later[path.path].history[: path.steps])


def test_the_same_seed_gives_the_same_bits():
    options = {"allocation": ONLINE(500, rounds=2), "discovery": pathmix.Guided(50)}
    one, other = (exact.fit(programs.ten_branches, 2.0, threads=threads, **options) for threads in (1, 2))
    assert one.weights == other.weights and [p.steps for p in one.paths] == [p.steps for p in other.paths]
