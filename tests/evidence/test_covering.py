"""Draws around the prior that tell the evidence by themselves need no particles to confirm them."""

import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy import stats

from pathmix.engine.requests import answered
from pathmix.evidence import settle
from pathmix.posterior.evidence import Efforts
from tests.evidence.searching import paths_of, search_of

pytestmark = pytest.mark.usefixtures("engine")


def squared(y, scale):
    """Two modes that mirror each other."""
    z = numpyro.sample("z", dist.Normal(0.3, 3))
    numpyro.sample("y", dist.Normal(z**2, scale), obs=y)


@pytest.mark.parametrize(("scale", "asked"), [(1.0, False), (0.1, True)])
def test_particles_are_asked_for_where_the_prior_tells_too_little(monkeypatch, scale, asked):
    calls = []

    def counted(*args):
        calls.append(args)
        return tempered(*args)

    tempered = settle.tempered
    monkeypatch.setattr(settle, "tempered", counted)
    (path,) = paths_of(squared, 4.0, scale)
    search, answer = search_of(path, steps=200)
    search.fit.starts_apart = True  # as at two modes
    found = answered(settle.settle(search, Efforts(), 0.01), answer)
    grid = np.linspace(-12, 12, 400_001)
    density = stats.norm.pdf(grid, 0.3, 3) * stats.norm.pdf(4.0, grid**2, scale)
    assert found.settled
    assert found.log_evidence == pytest.approx(np.log(np.trapezoid(density, grid)), abs=4.5 * found.error)
    assert bool(calls) is asked
