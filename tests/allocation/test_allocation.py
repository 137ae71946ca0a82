"""Budgets, phases and survivors of every allocation."""

import math

import pytest

from pathmix import SuccessiveHalving, Uniform
from pathmix.allocation import Candidate
from pathmix.errors import OptionError

ALLOCATIONS = [
    SuccessiveHalving(budget=1_000, keep=1),
    SuccessiveHalving(budget=10_000, keep=3),
    SuccessiveHalving(),
    Uniform(budget=999),
]


def simulate(allocation, paths):
    """Iterations of each path, when path i has ELBO -i."""
    spent = dict.fromkeys(range(paths), 0)
    active = list(spent)
    phases = allocation.phases(paths)
    for phase in range(phases):
        each = allocation.iterations(phases, len(active))
        for index in active:
            spent[index] += each
        if phase < phases - 1:
            active = allocation.survivors([Candidate(i, -float(i), spent[i]) for i in active])
    return spent, active


@pytest.mark.parametrize("allocation", ALLOCATIONS)
@pytest.mark.parametrize("paths", [1, 2, 3, 7, 10, 33, 200])
def test_the_budget_holds(allocation, paths):
    spent, _ = simulate(allocation, paths)
    assert sum(spent.values()) <= allocation.budget
    assert list(spent.values()) == sorted(spent.values(), reverse=True)


@pytest.mark.parametrize("keep", [1, 2, 10])
@pytest.mark.parametrize("paths", [1, 2, 3, 10, 17, 64, 200])
def test_halving_is_the_papers(keep, paths):
    """L = ceil(log2 K - log2 m) + 1 phases, floor(T / (L |C|)) iterations, m paths left at the end."""
    allocation = SuccessiveHalving(budget=1_000_000, keep=keep)
    phases = max(1, math.ceil(math.log2(paths) - math.log2(keep) - 1e-12) + 1)
    assert allocation.phases(paths) == phases
    assert allocation.iterations(phases, paths) == 1_000_000 // (phases * paths)
    _, active = simulate(allocation, paths)
    assert active == list(range(min(paths, keep)))


def test_one_round_drops_at_most_half():
    allocation = SuccessiveHalving(keep=2)
    candidates = [Candidate(i, elbo, 0) for i, elbo in enumerate([3.0, -math.inf, 5.0, 4.0, 1.0])]
    assert allocation.survivors(candidates) == [2, 3, 0]


@pytest.mark.parametrize("make", [SuccessiveHalving, Uniform])
@pytest.mark.parametrize("budget", [0, -1, 2.5, "many", True])
def test_budgets_are_checked(make, budget):
    with pytest.raises(OptionError, match="budget"):
        make(budget=budget)
