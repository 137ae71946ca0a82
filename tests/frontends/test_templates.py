"""Densities that are traced once for all sites of a kind are those of each site."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest

from pathmix.doors.jax import evaluate
from pathmix.frontends.numpyro.dissection import UnknownPartError, kind_of
from pathmix.frontends.numpyro.inputs import Name, graph_of, make_input, traced
from pathmix.frontends.numpyro.templates import _made, by_template

pytestmark = pytest.mark.usefixtures("engine")


def density(fn, value):
    return [jnp.sum(fn.log_prob(value)), jnp.zeros(()) + 1.0, value], type(fn).__name__


CASES = {
    "normal": (lambda x: dist.Normal(0.3, 2.0), 0.7),
    "whole number": (lambda x: dist.Normal(2, 3), 0.7),
    "traced": (lambda x: dist.Normal(x, jnp.exp(x)), 0.7),
    "expanded": (lambda x: dist.Normal(jnp.arange(3.0), 1.0).expand((2, 3)).to_event(1), np.ones((2, 3))),
    "bernoulli": (lambda x: dist.Bernoulli(0.3), 1),
    "categorical": (lambda x: dist.Categorical(probs=jnp.array([0.2, 0.3, 0.5])), 2),
    "binomial": (lambda x: dist.Binomial(7, 0.4), 3),
    "transformed": (lambda x: dist.LogNormal(x, 0.5), 0.7),
    "mixture": (
        lambda x: dist.MixtureSameFamily(
            dist.Categorical(jnp.array([0.5, 0.5])), dist.Normal(jnp.array([0.0, x]), jnp.ones(2))
        ),
        0.7,
    ),
    "masked": (lambda x: dist.Normal(x, 1.0).expand((2,)).mask(jnp.array([True, False])), np.ones(2)),
    "multivariate": (lambda x: dist.MultivariateNormal(jnp.zeros(2), jnp.eye(2) * (1 + x**2)), np.ones(2)),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("fold", [True, False])
def test_a_template_computes_the_same(name, fold):
    make, value = CASES[name]

    def run(token):
        x, y = (make_input(token, Name("site", n), v.shape, v.dtype) for n, v in zip("xy", at, strict=True))
        results, kind = by_template(density, make(x), y, fold=fold)
        assert kind == type(make(x)).__name__
        return results

    at = (np.asarray(0.4), np.asarray(value))
    graph = graph_of(traced(run), [Name("site", "x"), Name("site", "y")])
    assert not any(eqn.primitive.name == "pathmix_template" for eqn in graph.jaxpr.eqns)
    found = evaluate(graph.jaxpr, (), *graph.consts, *at)
    np.testing.assert_allclose(found[0], make(0.4).log_prob(value).sum(), rtol=1e-12)
    np.testing.assert_array_equal(found[2], value)


def test_sites_of_a_kind_share_a_template_and_not_their_numbers():
    totals = []

    def run(token):
        y = make_input(token, Name("site", "y"), (), np.dtype(float))
        totals.extend(by_template(density, dist.Normal(loc, 1.0), y)[0][0] for loc in (0.0, 1, 2.5))
        return totals

    before = _made.cache_info().misses
    graph = graph_of(traced(run), [Name("site", "y")])
    assert _made.cache_info().misses - before <= 2  # with a float and with a whole number
    found = evaluate(graph.jaxpr, (), *graph.consts, 0.5)
    np.testing.assert_allclose(found, [dist.Normal(loc, 1.0).log_prob(0.5) for loc in (0.0, 1.0, 2.5)])


def test_what_a_class_of_the_users_does_is_not_guessed():
    class Own(dist.Normal):
        pass

    with pytest.raises(UnknownPartError):
        kind_of(Own(0.0, 1.0), [])
    with pytest.raises(UnknownPartError):
        kind_of(lambda: 0, [])
    with pytest.raises(UnknownPartError):
        kind_of(dist.Binomial(jnp.arange(1_000), 0.5), [])
    assert kind_of(dist.Binomial(3, 0.5), []) != kind_of(dist.Binomial(4, 0.5), [])


def test_no_cache_keeps_a_tracer():
    def run(token):
        x = make_input(token, Name("site", "x"), (), np.dtype(float))
        return by_template(density, dist.Cauchy(x, 1.0), x)[0]

    with jax.checking_leaks():
        traced(run)
