"""The tree of decisions as results have it tells every path, how probable it is, and what nobody saw."""

import math
from dataclasses import dataclass, replace

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pyro
import pyro.distributions as pdist
import pytest
import torch
from numpyro import sample
from scipy import stats

import pathmix
from pathmix import Enumeration, PriorDiscovery
from pathmix.discovery.forks import read
from pathmix.regions.intervals import Interval
from tests import exact, paths
from tests.zoo import programs, pyro_programs

LIBRARIES = [programs, pyro_programs]
NAMES = [model.__name__ for model in programs.PROGRAMS]


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("name", NAMES)
def test_every_path_is_a_way_to_a_leaf(name, library):
    model = getattr(library, name)
    found = paths.discover(model, *library.PROGRAMS[model], samples=100)
    seen = set()
    for path in found.paths:
        ways = found.tree.ways(path.slp.path)
        assert all(way.leads_to is not None for _, way in ways[:-1])
        assert not ways or ways[-1][1].leads_to is None
        texts = tuple(way.text for _, way in ways)
        assert texts not in seen and all(texts)
        seen.add(texts)
        if all(way.error == 0 for _, way in ways):
            mass = math.prod(way.probability for _, way in ways)
            assert mass == pytest.approx(path.prior_mass, rel=1e-9)


def count(y):
    number = 0
    while sample(f"go_{number}", dist.Bernoulli(0.4)):
        number += 1
    x = sample("x", dist.Normal(0, 1))
    if x > number:
        x = x + sample("z", dist.Normal(0, 1))
    sample("y", dist.Normal(x, 1), obs=y)


def count_in_pyro(y):
    number = 0
    while pyro.sample(f"go_{number}", pdist.Bernoulli(0.4)):
        number += 1
    x = pyro.sample("x", pdist.Normal(0.0, 1.0))
    if x > number:
        x = x + pyro.sample("z", pdist.Normal(0.0, 1.0))
    pyro.sample("y", pdist.Normal(x, 1.0), obs=torch.tensor(y))


@pytest.mark.parametrize("model", [count, count_in_pyro])
def test_what_was_seen_and_what_was_not_is_all(model):
    """By exact probabilities, in the tree and in the report."""
    found = paths.discover(model, 0.5, samples=40)
    unseen = found.tree.unexplored()
    assert all(one.is_exact and one.mass > 0 for one in unseen)
    assert sum(one.mass for one in unseen) == pytest.approx(found.unseen_mass, abs=1e-12)
    seen = sum(path.prior_mass for path in found.paths)
    assert seen + sum(one.mass for one in unseen) == pytest.approx(1, abs=1e-12)
    # The longest count that was seen has a next one, and a deep enough branch has not been on its far side.
    longest = max(len(path.slp.path.pinned) for path in found.paths)
    steps = tuple(f"go_{number}=1" for number in range(longest - 1))
    assert (steps, (f"go_{longest - 1}=1",)) in [(one.after, one.ways) for one in unseen]
    assert [one.mass for one in unseen] == sorted((one.mass for one in unseen), reverse=True)


def test_values_that_nobody_saw_have_names():
    def model(y):
        k = sample("k", dist.Poisson(0.1))
        sample("y", dist.Normal(sample("x", dist.Normal(0, 1)) if k == 0 else 1.0, 1), obs=y)

    (left,) = paths.discover(model, 0.0, samples=3).tree.unexplored()
    assert left.ways[0] in ("k=1", "k=2") and left.ways[-1] == "others" and left.after == ()

    def few(y):
        k = sample("k", dist.Categorical(probs=np.array([0.999999, 0.000001])))
        sample("y", dist.Normal(sample("x", dist.Normal(0, 1)) if k == 0 else 1.0, 1), obs=y)

    (left,) = paths.discover(few, 0.0, samples=3).tree.unexplored()
    assert left.ways == ("k=1",) and left.mass == pytest.approx(1e-6, rel=1e-3)


@pytest.mark.parametrize("flip", [False, True])
def test_the_other_side_of_a_bound(flip):
    def model(y):
        u = sample("u", dist.Normal(0, 1))
        if (-u if flip else u) > (-9.0 if flip else 9.0):
            u = sample("v", dist.Normal(u, 1))
        sample("y", dist.Normal(u, 1), obs=y)

    (left,) = paths.discover(model, 0.0, samples=5).tree.unexplored()
    assert left.ways == (("u >= 9",) if flip else ("u > 9",)) and left.mass < 1e-18


def test_bounds_of_one_number_read_as_one():
    found = paths.discover(programs.ten_branches, 2.0, samples=100)
    labels = {read(found.tree.ways(path.slp.path)) for path in found.paths}
    assert ("u <= -4",) in labels and ("-3 < u <= -2",) in labels
    assert all(len(ways) == 1 for ways in labels)


def test_decisions_that_bound_nothing_by_themselves_are_quoted():
    found = paths.discover(programs.sum_branch, 1.0, samples=100)
    (fork,) = found.tree.forks
    assert sorted(way.text for way in fork.ways) == ["a + b > 1", "not (a + b > 1)"]
    assert (
        fork.unseen == 0
        and not any(way.about for way in fork.ways)
        and all(way.error > 0 for way in fork.ways)
    )


@dataclass(frozen=True)
class Treeless:
    """A discovery that keeps no tree."""

    inner: PriorDiscovery

    @property
    def limits(self):
        return self.inner.limits

    def discover(self, program, seed, on_path):
        return replace(self.inner.discover(program, seed, on_path), tree=None)


def test_a_discovery_that_keeps_no_tree():
    """It is made of what was found, and as good: also where more runs took a path than are kept."""

    def model(y):
        a, b = sample("a", dist.Normal(0, 1)), sample("b", dist.Normal(0, 1))
        mean = sample("x", dist.Normal(0, 1)) if a + b > 2 else a
        sample("y", dist.Normal(mean, 1), obs=y)

    own, made = (
        exact.fit(model, 0.5, budget=100, discovery=discovery).tree
        for discovery in (PriorDiscovery(5_000), Treeless(PriorDiscovery(5_000)))
    )
    assert own == made
    (fork,) = made.forks
    assert fork.ways[0].error < 0.01


def test_masses_behind_estimates_are_estimates():
    def model(y):
        a, b = sample("a", dist.Normal(0, 1)), sample("b", dist.Normal(0, 1))
        count = int(sample("k", dist.Poisson(0.5))) if a + b > 1 else 0
        sample("y", dist.Normal(count, 1), obs=y)

    (left,) = paths.discover(model, 0.5, samples=40).tree.unexplored()
    assert not left.is_exact and left.ways[-1] == "others"


def test_ways_of_which_no_prior_run_tells():
    """They are nobody knows how probable, which is not zero."""

    def model(y):
        a, b, c = (sample(name, dist.Normal(0, 1)) for name in "abc")
        mean = (8.0 if b * c > 0 else 9.0) if a > 5 else a
        sample("y", dist.Normal(mean, 1), obs=y)

    tree = exact.fit(model, 8.0, budget=500, discovery=pathmix.Guided(60, rounds=2)).tree
    (fork,) = (fork for fork in tree.forks if len(fork.ways) == 2 and fork.ways[0].error > 0)
    assert sum(way.probability for way in fork.ways) == pytest.approx(1)


@pytest.mark.parametrize("seed", range(4))
def test_what_bounds_nothing_is_not_left_out_before_a_bound(seed):
    """Whichever path was first."""

    def model(y):
        u = sample("u", dist.Normal(0, 1))
        if abs(u) < 1:
            mean = 0.0
        else:
            mean = 1.0 if u < 2 else 2.0
        sample("y", dist.Normal(mean, 1), obs=y)

    found = paths.discover(model, 0.5, samples=100, seed=seed)
    assert {read(found.tree.ways(path.slp.path)) for path in found.paths} == {
        ("-1 < u < 1",),
        ("not (abs(u) < 1)", "u < 2"),
        ("not (abs(u) < 1)", "u >= 2"),
    }


def test_empty_intervals_are_nowhere_to_go():
    """Also after a decision that says something else."""

    def model(y):
        u, v = sample("u", dist.Normal(0, 1)), sample("v", dist.Normal(0, 1))
        mean = 0.0
        if u > 0:
            if u * v > 0.5:
                mean = 1.0
            if u > -1:
                mean = mean + 2.0
        sample("y", dist.Normal(mean, 1), obs=y)

    found = paths.discover(model, 0.5, samples=60)
    assert not found.tree.unexplored() and len(found.paths) == 3


@pytest.mark.parametrize("library", ["numpyro", "pyro"])
def test_all_values_of_a_site_whose_probabilities_are_drawn(library):
    """There are no others."""
    made = dist if library == "numpyro" else pdist
    draw = sample if library == "numpyro" else pyro.sample

    def model():
        k = draw("k", made.Bernoulli(draw("p", made.Beta(2.0, 2.0))))
        if k == 1:
            draw("x", made.Normal(0.0, 1.0))

    found = paths.discover(model, samples=50)
    assert not found.tree.unexplored() and len(found.paths) == 2
    assert found.unseen_bound == 0


def test_other_numbers_that_are_looked_at():
    def model(y):
        u = sample("u", dist.Normal(0, 1))
        sample("y", dist.Normal(float(int(jnp.floor(u))), 1), obs=y)

    found = paths.discover(model, 0.5, samples=100)
    (left,) = found.tree.unexplored()
    seen = {int(path.slp.path.decisions[0].value) for path in found.paths}
    text, _, others = left.ways[0].partition(" other than ")
    assert "floor(u)" in text
    assert {int(other) for other in others.split(", ")} == seen


def test_values_with_which_the_program_fails():
    def model(y):
        k = int(sample("k", dist.Categorical(probs=np.array([0.7, 0.1, 0.1, 0.1]))))
        if k == 2:
            raise ValueError("never two")
        sample("y", dist.Normal(sample("x", dist.Normal(k, 1)), 1), obs=y)

    with pytest.warns(UserWarning, match="never two"):
        (left,) = exact.fit(model, 0.5, budget=100, discovery=Enumeration(60)).tree.unexplored()
    assert left.ways == ("k=2",) and left.mass == pytest.approx(0.1, abs=1e-6)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_tails_are_exact_on_both_sides(sign):
    def model(y):
        u = sample("u", dist.Normal(0, 1))
        mean = sample("x", dist.Normal(0, 1)) if sign * u > 8 else u
        sample("y", dist.Normal(mean, 1), obs=y)

    tree = exact.fit(model, 40.0 * sign, budget=500, discovery=pathmix.Guided(60, rounds=1)).tree
    (far,) = (way for way in tree.forks[0].ways if way.text == ("u > 8" if sign > 0 else "u < -8"))
    assert far.probability == pytest.approx(stats.norm.sf(8), rel=1e-9) and far.error == 0


def test_bounds_that_differ_in_late_digits():
    assert Interval(1_234_567.1, 1_234_567.2, True).describe("u") == "1234567.1 <= u < 1234567.2"
    assert Interval(0.0, 1.0 / 3).describe("u") == "0 < u < 0.333333"


def test_a_posterior_has_it_and_so_has_its_file(tmp_path):
    posterior = exact.fit(count, 0.5, budget=200, discovery=PriorDiscovery(40))
    posterior.save(tmp_path / "count.pathmix")
    loaded = pathmix.load(tmp_path / "count.pathmix")
    assert loaded.tree == posterior.tree and posterior.tree.forks
    for path in loaded.paths:
        assert loaded.tree.ways(path.path)[-1][1].leads_to is None


def test_after_everything_was_enumerated_nothing_is_unexplored():
    def model(y):
        a, b = (sample(name, dist.Categorical(probs=np.array([0.2, 0.8]))) for name in "ab")
        mean = sample("x", dist.Normal(0, 1)) if a == b else 1.0
        sample("y", dist.Normal(mean, 1), obs=y)

    tree = exact.fit(model, 0.0, budget=200, discovery=Enumeration()).tree
    assert not tree.unexplored() and len(tree.forks) == 3
