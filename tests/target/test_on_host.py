"""Maps between values and vectors: on the host, they are what compiled ones are."""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

from pathmix.engine.executables import Executables
from pathmix.engine.precision import precision_scope
from pathmix.engine.requests import answered
from pathmix.target.on_host import constrained, has_values, unconstrained
from tests.evidence.searching import fit_of, paths_of


@pytest.fixture(autouse=True)
def digits():
    with precision_scope("float64"):
        yield


def programs():
    def real():
        numpyro.sample("x", dist.Normal(0.0, 1.0).expand([2, 3]))

    def positive():
        numpyro.sample("x", dist.HalfNormal(2.0))
        numpyro.sample("y", dist.Gamma(2.0, 1.0).expand([2]))

    def bounded():
        numpyro.sample("x", dist.Uniform(-1.0, 3.0).expand([3]))
        numpyro.sample("y", dist.Beta(2.0, 2.0))

    def boxes():
        x = numpyro.sample("x", dist.Normal(0.0, 1.0))
        y = numpyro.sample("y", dist.Normal(0.0, 1.0))
        numpyro.sample("z", dist.Normal(0.0, 1.0))
        if (x > 0.3) & (y < 0.5):
            numpyro.sample("w", dist.Normal(0.0, 1.0))

    def interval():
        x = numpyro.sample("x", dist.Normal(0.0, 1.0))
        if 0.0 < x < 1.0:
            numpyro.sample("w", dist.Exponential(1.0))

    return [real, positive, bounded, boxes, interval]


@pytest.mark.parametrize("model", programs(), ids=lambda model: model.__name__)
def test_both_ways_are_the_compiled_ones(model):
    for path in paths_of(model):
        fit = fit_of(path, Executables())
        coordinates, arguments = fit.target.coordinates, fit.target.arguments.map
        vectors = 2 * np.random.default_rng(0).normal(size=(20, fit.target.dim))
        values = constrained(coordinates, arguments, vectors)
        assert values is not None
        for row, vector in enumerate(vectors):
            compiled, _ = coordinates.constrain(vector, arguments)
            for found, wanted in zip(values, compiled, strict=True):
                assert found.dtype == wanted.dtype
                np.testing.assert_allclose(found[row], wanted, rtol=1e-12)
        back = unconstrained(coordinates, arguments, values)
        np.testing.assert_allclose(back, vectors, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_numbers_between_zero_and_one_do_not_come_to_the_ends(precision):
    def share():
        numpyro.sample("x", dist.Beta(0.1, 0.1).expand([2]))

    with precision_scope(precision):
        (path,) = paths_of(share)
        fit = fit_of(path, Executables())
        coordinates, arguments = fit.target.coordinates, fit.target.arguments.map
        vectors = np.array([[20.0, -20.0], [60.0, -60.0]])
        values = answered(fit.constrained(vectors), Executables().answer)
        compiled = [coordinates.constrain(vector, arguments)[0] for vector in jnp.asarray(vectors)]
        for row, (wanted,) in enumerate(compiled):
            np.testing.assert_allclose(values[0][row], wanted, rtol=1e-5)
        assert np.all(np.isfinite(unconstrained(coordinates, arguments, values)))


def test_a_vector_without_values_is_known():
    def rate():
        numpyro.sample("x", dist.Gamma(2.0, 1.0))

    (path,) = paths_of(rate)
    fit = fit_of(path, Executables())
    where = fit.target.coordinates, fit.target.arguments.map
    assert has_values(*where, np.array([100.0]))
    assert not has_values(*where, np.array([966.0])) and not has_values(*where, np.array([-966.0]))


def test_what_is_not_elementary_is_left_to_others():
    def simplex():
        numpyro.sample("x", dist.Dirichlet(np.ones(3)))

    (path,) = paths_of(simplex)
    fit = fit_of(path, Executables())
    coordinates, arguments = fit.target.coordinates, fit.target.arguments.map
    assert constrained(coordinates, arguments, np.zeros((4, 2))) is None
    assert unconstrained(coordinates, arguments, [np.full((4, 3), 1 / 3)]) is None
