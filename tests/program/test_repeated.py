"""Numbers that repeat are computed with once, and nothing else changes."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pyro
import pyro.distributions as pyro_dist
import pytest
import torch
from scipy import stats

from pathmix.program.canonical import canonical
from pathmix.program.graph import Graph
from tests.paths import discover, target_of

pytestmark = pytest.mark.usefixtures("engine")

GRID = np.linspace(0, 1, 40)
DISTANCES = np.abs(GRID[:, None] - GRID)
COUNTS = np.random.default_rng(0).poisson(3.0, 5_000).astype(float)
SIGNED = np.where(np.arange(5_000) % 2, 0.0, -0.0)
UNIQUE = np.random.default_rng(0).normal(size=(40, 40))

FUNCTIONS = {
    "a kernel": lambda s, t: jnp.exp(-((DISTANCES / s) ** 2)) @ jnp.ones(40),
    "a sum of kernels": lambda s, t: jnp.linalg.norm(
        jnp.exp(-((DISTANCES / s) ** 2)) + jnp.sin(jnp.pi * DISTANCES / t) ** 2 + 3.0
    ),
    "with other arrays": lambda s, t: jnp.sum(jnp.exp(-DISTANCES / s) * UNIQUE + t * UNIQUE),
    "with vectors": lambda s, t: jnp.sum(jnp.exp(-DISTANCES / s) * (s * GRID)[:, None]),
    "counts": lambda s, t: jnp.sum(jax.lax.lgamma(COUNTS + s) - COUNTS * jnp.log(t)),
    "two zeros": lambda s, t: jnp.sum(jnp.arctan2(SIGNED * s, -t)),
    "a choice": lambda s, t: jnp.sum(jnp.where(s < COUNTS, jnp.log(COUNTS + t), jnp.sqrt(COUNTS * s))),
    "a broadcast number": lambda s, t: jnp.sum(jnp.exp(jnp.full((40, 40), s) * DISTANCES)),
    "nothing that costs": lambda s, t: jnp.sum(s * DISTANCES + t),
    "a number before arrays": lambda s, t: jnp.sum(jnp.exp(-(2.0 + (COUNTS + s * COUNTS)))),
    "numbers and arrays": lambda s, t: jnp.sum(jnp.log(2.0 + (s + (DISTANCES + (t + 1.0))))),
    "an output": lambda s, t: jnp.exp(s * COUNTS),
    "numbers that are none": lambda s, t: jnp.nansum(jnp.exp(s * np.where(COUNTS == 2, np.nan, COUNTS))),
    "whole numbers": lambda s, t: jnp.sum(jnp.floor(jnp.exp(s * COUNTS)).astype(int)),
}


def forms(function):
    graph = Graph.of(jax.make_jaxpr(lambda s, t: [function(s, t)])(1.0, 1.0))
    return graph, canonical(graph, [None, None], order=(0, 1)).graph


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_gradients_are_the_same(name):
    graph, compact = forms(FUNCTIONS[name])
    for s, t in np.random.default_rng(1).uniform(0.3, 2.0, (5, 2)):
        expected, found = (jnp.sum(g(g.consts, [s, t])[0]) for g in (graph, compact))
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        if name != "whole numbers":
            slopes = [jax.grad(lambda p, g=g: jnp.sum(g(g.consts, p)[0]))([s, t]) for g in (graph, compact)]
            np.testing.assert_allclose(slopes[1], slopes[0], rtol=1e-9, atol=1e-12)


def elements(graph, name):
    return [eqn.outvars[0].aval.size for eqn in graph.jaxpr.eqns if eqn.primitive.name == name]


def test_a_kernel_is_evaluated_at_the_different_distances():
    _, compact = forms(FUNCTIONS["a sum of kernels"])
    different = len(np.unique(DISTANCES))
    assert different < 200 and all(size < 400 for size in elements(compact, "exp") + elements(compact, "sin"))
    assert elements(compact, "gather")[-1] == 1_600


def test_what_costs_little_stays():
    _, compact = forms(FUNCTIONS["nothing that costs"])
    assert not elements(compact, "gather")


def test_different_numbers_stay():
    _, compact = forms(lambda s, t: jnp.sum(jnp.exp(s * UNIQUE)))
    assert elements(compact, "exp") == [1_600] and not elements(compact, "gather")


def gaussian_process(x, y):
    scale = numpyro.sample("scale", dist.LogNormal(0.0, 1.0))
    noise = numpyro.sample("noise", dist.HalfNormal(1.0))
    covariance = jnp.exp(-0.5 * ((x[:, None] - x) / scale) ** 2) + (noise**2 + 1e-6) * jnp.eye(len(x))
    numpyro.sample("y", dist.MultivariateNormal(jnp.zeros(len(x)), covariance_matrix=covariance), obs=y)


def pyro_gaussian_process(x, y):
    scale = pyro.sample("scale", pyro_dist.LogNormal(0.0, 1.0))
    noise = pyro.sample("noise", pyro_dist.HalfNormal(1.0))
    covariance = torch.exp(-0.5 * ((x[:, None] - x) / scale) ** 2) + (noise**2 + 1e-6) * torch.eye(len(x))
    mean = torch.zeros(len(x))
    pyro.sample("y", pyro_dist.MultivariateNormal(mean, covariance_matrix=covariance), obs=y)


@pytest.mark.parametrize("library", ["numpyro", "pyro"])
def test_programs_of_both_libraries_have_the_density_of_scipy(library):
    y = np.sin(5 * GRID)
    if library == "numpyro":
        found = discover(gaussian_process, GRID, y, samples=4)
    else:
        found = discover(pyro_gaussian_process, torch.tensor(GRID), torch.tensor(y), samples=4)
    target = target_of(found.paths[0])
    assert max(elements(target.graphs.density, "exp"), default=0) < 400
    scale, noise = 0.3, 0.2
    values = {"scale": scale, "noise": noise}
    given = [jnp.asarray(values[site.name]) for site in target.sites]
    prior, likelihood = target.graphs.density(target.arguments.density, given)[:2]
    covariance = np.exp(-0.5 * (DISTANCES / scale) ** 2) + (noise**2 + 1e-6) * np.eye(40)
    expected = stats.multivariate_normal(np.zeros(40), covariance).logpdf(y)
    np.testing.assert_allclose(likelihood, expected, rtol=1e-8)
    expected = stats.lognorm(1.0).logpdf(scale) + stats.halfnorm().logpdf(noise)
    np.testing.assert_allclose(prior, expected, rtol=1e-8)


@pytest.mark.parametrize(
    "combine", [lambda a, b: a + b, lambda a, b: a * b, lambda a, b: a + b + 3.0 * UNIQUE]
)
def test_the_order_of_kernels_does_not_matter(combine):
    def smooth(s):
        return jnp.exp(-0.5 * (DISTANCES / s) ** 2)

    def periodic(s):
        return jnp.exp(-2 * (np.sin(3 * np.pi * DISTANCES) / s) ** 2)

    def graph(first, second):
        return Graph.of(jax.make_jaxpr(lambda s, t: [jnp.linalg.det(combine(first(s), second(t)))])(1.0, 1.0))

    one, other = (canonical(graph(*pair), [None, None]) for pair in ((smooth, periodic), (periodic, smooth)))
    assert one.graph.structure == other.graph.structure and one.order == other.order[::-1]
    for mine, yours in zip(one.graph.consts, other.graph.consts, strict=True):
        np.testing.assert_array_equal(mine, yours)
