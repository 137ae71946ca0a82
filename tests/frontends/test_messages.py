"""Mistakes that the libraries tell in their own words, or not at all: named with site, line and way out."""

from functools import partial
from math import comb

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pyro
import pyro.distributions as pdist
import pytest
import torch
from numpyro.infer.reparam import CircularReparam

import pathmix
from pathmix import errors
from pathmix.discovery import PriorDiscovery
from pathmix.regions.region import read_region
from tests import exact, paths

LIBRARIES = pytest.mark.parametrize(
    ("library", "d", "xp", "array"),
    [(numpyro, dist, jnp, jnp.asarray), (pyro, pdist, torch, torch.tensor)],
    ids=["numpyro", "pyro"],
)


discover = partial(paths.discover, samples=32, on_path=lambda slp, draws: read_region(slp, draws).kind)


@LIBRARIES
@pytest.mark.parametrize("bounds", [(-np.inf, np.inf), (0.0, np.inf)])
def test_a_flat_prior(library, d, xp, array, bounds):
    def model():
        library.sample("x", d.Uniform(*map(array, bounds)))

    with pytest.raises(
        errors.UnsupportedSiteError, match=r"'x' at test_messages.py:\d+ has an improper prior"
    ):
        discover(model)


def test_a_reparameterisation_with_a_flat_prior():
    def model():
        numpyro.sample("angle", dist.VonMises(0.0, 2.0))

    with pytest.raises(
        errors.UnsupportedSiteError,
        match=r"'angle_unwrapped' at test_messages.py.* CircularReparam puts it in the place of 'angle'",
    ):
        discover(numpyro.handlers.reparam(model, config={"angle": CircularReparam()}))
    discover(model)


SHAPES = {
    "vector": lambda lib, d, xp, z, y: lib.sample("y", d.Normal(z + xp.zeros(3), 1.0), obs=y),
    "event": lambda lib, d, xp, z, y: lib.sample("y", d.Normal(z + xp.zeros(3), 1.0).to_event(1), obs=y),
    "matrix normal": lambda lib, d, xp, z, y: lib.sample(
        "y", d.MultivariateNormal(z + xp.zeros(3), xp.eye(3)), obs=y
    ),
}


@LIBRARIES
@pytest.mark.parametrize("name", SHAPES)
def test_data_of_a_wrong_shape(library, d, xp, array, name):
    def model(y):
        SHAPES[name](library, d, xp, library.sample("z", d.Normal(0.0, 1.0)), y)

    with pytest.raises(
        errors.ShapeError,
        match=r"site 'y' at test_messages.py:\d+, the value has shape \(5,\) and the dist.* has shape \(3,\)",
    ):
        discover(model, array(np.zeros(5)))


@LIBRARIES
@pytest.mark.parametrize("size", [3, 5])
def test_a_plate_of_another_size(library, d, xp, array, size):
    def model(y):
        z = library.sample("z", d.Normal(0.0, 1.0))
        with library.plate("rows", 4):
            library.sample("y", d.Normal(z + xp.zeros(size) if size == 3 else z, 1.0), obs=y)

    with pytest.raises(
        errors.ShapeError, match=rf"'y' at test_messages.py:\d+, .*\({size},\).*plate 'rows' has size 4"
    ):
        discover(model, array(np.zeros(size)))


@LIBRARIES
def test_shapes_that_broadcast_are_welcome(library, d, xp, array):
    def model(y):
        z = library.sample("z", d.Normal(0.0, 1.0))
        library.sample("y", d.Normal(z + xp.zeros((2, 1)), 1.0), obs=y)

    assert len(discover(model, array(np.zeros(5))).paths) == 1


@LIBRARIES
@pytest.mark.parametrize(
    ("ask", "what"),
    [(bool, "a truth value"), (int, "an int"), (lambda x: 1.0 if x > 0 else 0.0, "a truth value")],
)
def test_a_decision_on_a_vector_in_a_plate(library, d, xp, array, ask, what):
    def model():
        with library.plate("rows", 3):
            ask(library.sample("z", d.Normal(0.0, 1.0)))

    with pytest.raises(
        errors.VectorDecisionError,
        match=rf"^test_messages.py:\d+: .* {what}.*vector of shape \(3,\), inside the plate 'rows'.*`where`",
    ):
        discover(model)


@LIBRARIES
def test_a_decision_on_a_vector_without_a_plate(library, d, xp, array):
    def model():
        if library.sample("z", d.Normal(0.0, 1.0).expand([2, 3]).to_event(2)) > 0:
            pass

    with pytest.raises(errors.VectorDecisionError, match=r"vector of shape \(2, 3\)\. To decide"):
        discover(model)


INVALID = {
    "scale": (lambda d, array: d.Normal(0.0, array(-1.0)), "The scale of Normal", "is -1"),
    "zero": (lambda d, array: d.Normal(0.0, array(0.0)), "The scale of Normal", "is 0"),
    "number": (lambda d, array: d.Normal(0.0, -2.0), "The scale of Normal", "is -2"),
    "elements": (
        lambda d, array: d.HalfNormal(array([1.0, -3.0, 2.0])).to_event(1),
        "The scale of (Half)?Normal",
        r"is -3 \(in 1 of 3 elements\)",
    ),
    "probability": (lambda d, array: d.Bernoulli(array(1.5)), "The probs of Bernoulli", "is 1.5"),
    "shape": (lambda d, array: d.Gamma(array(-2.0), 1.0), "The concentration of Gamma", "is -2"),
    "inner": (
        lambda d, array: d.MixtureSameFamily(
            d.Categorical(array([0.5, 0.5])), d.Normal(array([0.0, 0.0]), array([1.0, -1.0]))
        ),
        "The scale of Normal",
        "is -1",
    ),
    "nan": (lambda d, array: d.Normal(0.0, array(float("nan"))), "The scale of Normal", "is nan"),
}


@LIBRARIES
@pytest.mark.parametrize("name", INVALID)
@pytest.mark.parametrize("observed", [False, True])
def test_a_parameter_outside_of_its_constraint(library, d, xp, array, name, observed):
    make, parameter, value = INVALID[name]
    data = array(np.ones(3)) if name == "elements" else array(1.0)

    def model():
        library.sample("z", d.Normal(0.0, 1.0))
        library.sample("x", make(d, array), obs=data if observed else None)

    said = rf"{parameter}\w* at the site 'x' at test_messages.py:\d+ {value}.*outside of"
    with pytest.raises(errors.InvalidParameterError, match=said):
        discover(model)


@LIBRARIES
def test_ends_that_are_swapped(library, d, xp, array):
    def model():
        library.sample("x", d.Uniform(array(5.0), array(2.0)))

    with pytest.raises(errors.InvalidParameterError, match=r"'x' at test_messages.py:\d+ are 5 and 2"):
        discover(model)


def test_probabilities_that_do_not_sum_to_one():
    """NumPyro's density takes them as they are, and its draws normalise them. (Pyro normalises.)"""

    def model():
        k = numpyro.sample("k", dist.Categorical(probs=jnp.ones(3)))
        numpyro.sample("x", dist.Normal(k, 1))

    with pytest.raises(
        errors.InvalidParameterError, match=r"The probs of .*'k' at test_messages.py:\d+.*Simplex"
    ):
        discover(model)


@LIBRARIES
def test_rounding_is_no_violation(library, d, xp, array):
    def model():
        library.sample("b", d.Bernoulli(array(1.0 + 1e-9 if d is dist else 1.0)))  # PyTorch refuses to draw
        library.sample("c", d.Categorical(array(np.full(3, 0.33333334))))
        library.sample("p", d.Poisson(array(0.0)), obs=array(0.0))

    assert len(discover(model).paths) == 3


@LIBRARIES
def test_a_random_parameter_outside_of_its_constraint(library, d, xp, array):
    def model(y):
        z = library.sample("z", d.Normal(0.0, 1.0))
        library.sample("y", d.Normal(0.0, z), obs=y)

    with pytest.warns(pathmix.PathmixWarning, match="No path carries weight"):
        posterior = exact.fit(model, array(1.0), budget=10, discovery=PriorDiscovery(64))
    (note,) = (note for note in posterior.notes if "outside of" in note)
    assert "The scale of Normal at the site 'y' at test_messages.py:" in note and "of 64 prior runs" in note


def test_a_random_parameter_that_pytorch_refuses_to_draw_with():
    def model():
        z = pyro.sample("z", pdist.Normal(0.5, 1.0))
        pyro.sample("x", pdist.Bernoulli(z))

    said = r"The probs of Bernoulli at the site 'x' at test_messages.py:\d+ is .* prior runs"
    with pytest.warns(pathmix.PathmixWarning, match=said):
        found = discover(model)
    assert 0 < found.failed_runs < 32
    assert np.all([0 <= z <= 1 for path in found.paths for z in path.draws["z"]])


def uniform(d, n, xp):
    return d.DiscreteUniform(0, n - 1) if d is dist else d.Categorical(xp.ones(int(n)))


RANGES = {
    "uniform": lambda d, n, xp: uniform(d, n, xp),
    "binomial": lambda d, n, xp: d.Binomial(n, 0.5 if d is dist else torch.tensor(0.5)),
}


@LIBRARIES
@pytest.mark.parametrize("name", RANGES)
def test_a_range_that_is_another_discrete_site(library, d, xp, array, name):
    def model(y):
        n = library.sample("n", d.Categorical(array([0.25, 0.75]))) + 1
        n = n.double() if d is pdist else n  # as PyTorch wants it
        k = library.sample("k", RANGES[name](d, n, xp))
        library.sample("y", d.Normal(1.0 * k, 1.0), obs=y)

    found = discover(model, array(1.0), samples=64)
    for path in found.paths:
        pinned = dict(path.slp.path.pinned)
        n = pinned["n"] + 1
        chance = 1 / n if name == "uniform" else comb(n, pinned["k"]) / 2**n
        assert path.prior_mass == pytest.approx([0.25, 0.75][pinned["n"]] * chance)
    assert found.unseen_is_exact and found.unseen_mass == 0


@LIBRARIES
def test_too_many_values_of_a_site_that_decides_nothing(library, d, xp, array):
    def model(y):
        n = library.sample("n", d.Poisson(array(100_000.0)))
        library.sample("x", d.Normal(n, 1.0), obs=y)

    with pytest.raises(
        errors.UnsupportedSiteError,
        match=r"'n' at test_messages.py:\d+ decides no branch.*branch, with int\(\.\.\.\)",
    ):
        discover(model, array(1.0))
