"""Paths that were trained before the leading one are tried again, with what it has found since."""

from types import SimpleNamespace

import pytest

from pathmix.allocation import Uniform
from pathmix.discovery.kin import Kin
from pathmix.methods.scouting import Scouting
from tests.discovery.test_kin import ADD, LINE, WAVE, known, path

pytestmark = pytest.mark.usefixtures("engine")
BOTH = {"t": ADD, "t_l": WAVE, "t_r": LINE}
LARGE, SMALL = 1e9, 1


class Fit:
    """What is looked at of a path under training."""

    trainable = True

    def __init__(self, worth, volume=LARGE, steps=200, slp=None, **kinds):
        density = SimpleNamespace(volume=volume)
        self.target = SimpleNamespace(slp=slp or path(**kinds), graphs=SimpleNamespace(density=density))
        self.evidence, self.elbo, self.steps = SimpleNamespace(log_evidence=worth), worth, steps


def scouting(several=True):
    workshop = SimpleNamespace(kin=Kin())
    return Scouting(workshop, None, 200, Uniform(1_000), None, several=several)


def related(scout, *fits, most=10):
    chosen = scout._related([SimpleNamespace(work=fit) for fit in fits], most)
    return [one.work for one in chosen]


def test_those_that_are_worth_less_than_their_relatives_are_tried_first():
    """All that has a wave is good, and all that has none is bad, but for one path."""
    best, worst = path(**BOTH), path(t=ADD, t_l=WAVE, t_r=WAVE)
    good = {slp: WAVE in dict(slp.path.pinned).values() for slp in known().values()}
    worth = {slp: 0.0 if good[slp] else -25.0 for slp in good} | {best: 1.0, worst: -25.0}
    fits = {slp: Fit(worth[slp], slp=slp) for slp in worth}
    scout, stuck = scouting(), fits[worst]
    assert related(scout, *fits.values(), most=1) == [stuck]
    assert stuck not in related(scout, *fits.values(), most=1)  # once is enough


def test_another_leading_path_is_another_chance():
    leading, wave, scout = Fit(0.0, **BOTH), Fit(-50.0, t=WAVE), scouting()
    assert related(scout, wave, leading) == [wave]
    new = Fit(10.0, t=ADD, t_l=WAVE, t_r=WAVE)
    assert set(related(scout, wave, leading, new)) == {wave, leading}


def test_strangers_are_left_alone():
    """Of a line, the noise alone is known: half of its sites. Of a line with a line, a third."""
    leading, line = Fit(0.0, t=WAVE), Fit(-50.0, t=LINE)
    lines = Fit(-50.0, t=ADD, t_l=LINE, t_r=LINE)
    assert related(scouting(), leading, line, lines) == [line]


def test_densities_that_were_searched_need_no_second_try():
    """Nor does what was never trained; and with a single start nothing is taken over."""
    leading = Fit(0.0, **BOTH)
    assert related(scouting(), leading, Fit(-50.0, volume=SMALL, t=WAVE)) == []
    assert related(scouting(), leading, Fit(-50.0, steps=0, t=WAVE)) == []
    assert related(scouting(several=False), leading, Fit(-50.0, t=WAVE)) == []
