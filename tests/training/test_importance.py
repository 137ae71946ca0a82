"""Importance sampling: right, with the error that it states, and a warning where it cannot be."""

import numpy as np
import pytest
from scipy import stats

from pathmix.training.importance import importance

REPEATS = 200


def log_ratios(generator, scale, count=4_000, dim=3):
    """Of a standard normal to a wider or narrower one: the evidence is one."""
    draws = scale * generator.standard_normal((count, dim))
    return (stats.norm.logpdf(draws) - stats.norm.logpdf(draws, 0, scale)).sum(axis=1)


def test_an_exact_proposal_has_no_error():
    found = importance(np.full(1_000, -3.7))
    assert found.log_evidence == pytest.approx(-3.7, abs=1e-12) and found.error == pytest.approx(0, abs=1e-12)
    assert found.good and found.effective_draws == pytest.approx(1_000)


@pytest.mark.parametrize("scale", [1.1, 1.5, 3.0])
def test_stated_errors_hold(scale):
    """z is standard normal but for the errors' own errors: its mean within four of its standard errors."""
    generator = np.random.default_rng(0)
    found = [importance(log_ratios(generator, scale)) for _ in range(REPEATS)]
    z = np.array([one.log_evidence / one.error for one in found])
    assert abs(z.mean()) < 4 / np.sqrt(REPEATS) and 0.8 < z.std() < 1.2
    assert all(one.good for one in found)


def test_a_proposal_that_is_too_narrow_is_seen():
    generator = np.random.default_rng(0)
    found = [importance(log_ratios(generator, 0.35)) for _ in range(20)]
    assert not any(one.good for one in found) and np.median([one.khat for one in found]) > 0.7


def test_draws_outside_count_as_zero():
    inside = log_ratios(np.random.default_rng(0), 1.2)
    outside = np.full(3 * len(inside), -np.inf)
    alone, found = importance(inside), importance(np.concatenate([inside, outside]))
    assert found.log_evidence == pytest.approx(alone.log_evidence - np.log(4))
    assert found.khat == pytest.approx(alone.khat)


@pytest.mark.parametrize("least", [-1e3, -1e17])
def test_the_scale_does_not_suffer_from_rounding(least):
    """Draws far out in the tails have densities that are nothing, and logarithms that are huge."""
    usual = log_ratios(np.random.default_rng(0), 1.2)
    found = importance(np.append(usual, least))
    assert found.log_evidence == pytest.approx(importance(np.append(usual, -np.inf)).log_evidence, abs=0.01)


@pytest.mark.parametrize("ratios", [np.full(100, -np.inf), np.append(np.zeros(99), np.nan), np.zeros(10)])
def test_where_there_is_nothing_to_rely_on(ratios):
    assert not importance(ratios).good


def test_one_weight_that_is_all_there_is():
    """The others are zero beside it, and so is the scale of their tail."""
    found = importance(np.append(np.full(2_000, -900.0) - np.arange(2_000), 0.0))
    assert not found.good and np.isfinite(found.log_evidence)
