"""Which part of the vector belongs to which site."""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.distributions import transforms

from pathmix.target.layout import layout_of
from tests.paths import discover, target_of


def model():
    numpyro.sample("real", dist.Normal(0, 1).expand([2, 2]))
    scale = numpyro.sample("scale", dist.LogNormal(0, 1))
    numpyro.sample("within", dist.Uniform(0, scale))
    numpyro.sample("simplex", dist.Dirichlet(jnp.ones(3)))
    if numpyro.sample("cut", dist.Normal(0, 1)) > 1:
        numpyro.sample("interval", dist.Uniform(-1, jnp.array([1.0, 2.0])))
    with numpyro.handlers.mask(mask=jnp.array([True, False, True])):
        numpyro.sample("masked", dist.Normal(0, 1).expand([3]))


@pytest.mark.usefixtures("engine")
def test_slices_hold_what_moves_their_sites():
    path = max(discover(model, samples=200).paths, key=lambda path: len(path.slp.sites))
    target = target_of(path)
    layout = layout_of(target.coordinates)
    sites = {site.name: site for site in layout.sites}
    assert layout.dim == target.dim == len(layout.owners)
    lengths = {name: len(site) for name, site in sites.items()}
    assert lengths == {
        "real": 4, "scale": 1, "within": 1, "simplex": 2, "cut": 1, "interval": 2, "masked": 2
    }  # fmt: skip
    assert sites["real"].shape == (2, 2) and sites["masked"].shape == (3,)
    assert sites["real"].bounds == (-np.inf, np.inf) and sites["scale"].bounds == (0, np.inf)
    assert sites["interval"].bounds == (-1.0, (1.0, 2.0)) and sites["within"].bounds is None
    assert sites["cut"].bijection is None  # a box
    assert sites["simplex"].bijection is transforms.StickBreakingTransform
    hash(layout)

    names = [site.name for site in target.sites]
    u = np.random.default_rng(0).normal(size=layout.dim)
    before, _ = target.coordinates.constrain(jnp.asarray(u), target.arguments.map)
    for coordinate, owner in enumerate(layout.owners):
        moved = u.copy()
        moved[coordinate] += 0.5
        after, _ = target.coordinates.constrain(jnp.asarray(moved), target.arguments.map)
        changed = {n for n, a, b in zip(names, before, after, strict=True) if not np.array_equal(a, b)}
        own = layout.sites[owner].name
        assert changed == ({"scale", "within"} if own == "scale" else {own})
