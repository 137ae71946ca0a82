"""Kin: which sites of one path mean the same as those of another, wherever they stand."""

from functools import cache

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from numpyro import deterministic, sample

from pathmix.discovery.kin import Kin
from tests.paths import discover

pytestmark = pytest.mark.usefixtures("engine")
WAVE, LINE, ADD = 0, 1, 2
LEAVES = {WAVE: ("period", "phase"), LINE: ("slope",)}


def tree(name):
    """Waves and lines, and sums of two that have a scale of their own."""
    kind = int(sample(f"{name}.kind", dist.Categorical(jnp.array([0.35, 0.35, 0.3]))))
    if kind == ADD:
        return sample(f"{name}.scale", dist.Normal(0, 1)) * (tree(f"{name}.l") + tree(f"{name}.r"))
    return sum(sample(f"{name}.{kind}.{what}", dist.Normal(0, 1)) for what in LEAVES[kind])


def model(y):
    deterministic("all", tree("t") + sample("noise", dist.Normal(0, 1)))


@cache
def known():
    """The paths that prior runs take, by their kinds."""
    return {frozenset(path.slp.path.pinned): path.slp for path in discover(model, 0.0, samples=500).paths}


def path(**kinds):
    """A path by its tree, as in `path(t=ADD, t_l=WAVE, t_r=LINE)`."""
    return known()[frozenset((f"{name.replace('_', '.')}.kind", kind) for name, kind in kinds.items())]


def taken_over(lender, borrower):
    """For the borrower's sites, the lender's ones that they take over."""
    names = [site.name for site in lender.free]
    kin = Kin()
    kin.learn(known().values())
    values = {name: np.asarray(float(number)) for number, name in enumerate(names)}
    found = kin.taken_over(values, lender, borrower)
    return {name: names[int(value)] for name, value in found.items()}


WAVE_AND_LINE = {"t": ADD, "t_l": WAVE, "t_r": LINE}


def test_leaves_take_their_values_along():
    found = taken_over(path(t=WAVE), path(**WAVE_AND_LINE))
    assert found == {"t.l.0.period": "t.0.period", "t.l.0.phase": "t.0.phase", "noise": "noise"}
    found = taken_over(path(**WAVE_AND_LINE), path(t=LINE))
    assert found == {"t.1.slope": "t.r.1.slope", "noise": "noise"}


def test_the_order_of_operands_does_not_matter():
    found = taken_over(path(**WAVE_AND_LINE), path(t=ADD, t_l=LINE, t_r=WAVE))
    assert found["t.l.1.slope"] == "t.r.1.slope"
    assert found["t.r.0.period"] == "t.l.0.period"
    assert found["t.scale"] == "t.scale"


def test_whole_subtrees_go_before_their_parts():
    """The line beside the sum is another one than the line within it."""
    deep = path(t=ADD, t_l=LINE, t_r=ADD, t_r_l=WAVE, t_r_r=LINE)
    found = taken_over(path(**WAVE_AND_LINE), deep)
    assert found["t.r.r.1.slope"] == "t.r.1.slope"
    assert found["t.r.scale"] == "t.scale"
    assert not {"t.l.1.slope", "t.scale"} & found.keys()


def test_nothing_is_taken_over_twice():
    found = taken_over(path(t=WAVE), path(t=ADD, t_l=WAVE, t_r=WAVE))
    assert sum(name.endswith(".period") for name in found) == 1


def test_sites_mean_the_same_wherever_they_stand():
    kin = Kin()
    kin.learn(known().values())
    wave, line, both = (kin.roles(path(**kinds)) for kinds in ({"t": WAVE}, {"t": LINE}, WAVE_AND_LINE))
    assert len(wave & line) == 1  # the noise
    assert wave | line < both == kin.roles(path(t=ADD, t_l=LINE, t_r=WAVE))
