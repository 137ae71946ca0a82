"""No distribution of either library is thought to jump: their switches are guards, and harmless."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pyro
import pytest

from pathmix.engine.requests import answered
from pathmix.frontends.pyro.flatten import flatten
from pathmix.frontends.pyro.lowering.interpret import interpret
from pathmix.program.graph import Graph
from pathmix.target.switches import evaluate_marked
from pathmix.training.jumps import Marked, tried_switches
from tests.frontends.pyro.against_torch import FAST_TO_COMPILE, double_precision
from tests.frontends.pyro.test_distributions import EXAMPLES, LOOKING, as_function

POINTS = 48
NUMPYRO = {
    # A distribution made from positive numbers, and the value; all vary.
    "AsymmetricLaplace": (lambda a, b, c: dist.AsymmetricLaplace(a, b, c), (0.5, 1.2, 0.7), 0.6),
    "AsymmetricLaplaceQuantile": (lambda a, b: dist.AsymmetricLaplaceQuantile(a, b, 0.3), (0.5, 1.2), 0.6),
    "Beta": (dist.Beta, (0.8, 1.7), 0.4),
    "BetaProportion": (lambda m, k: dist.BetaProportion(m, k), (0.4, 3.0), 0.3),
    "Cauchy": (dist.Cauchy, (0.3, 1.2), 0.5),
    "Chi2": (dist.Chi2, (2.5,), 1.2),
    "Dagum": (dist.Dagum, (1.2, 0.7, 1.5), 0.9),
    "DoublyTruncatedPowerLaw": (lambda a: dist.DoublyTruncatedPowerLaw(a, 0.1, 9.0), (1.0,), 1.2),
    "Exponential": (dist.Exponential, (0.7,), 0.8),
    "FoldedDistribution": (lambda m: dist.FoldedDistribution(dist.Normal(m, 1.0)), (0.5,), 0.6),
    "Gamma": (dist.Gamma, (1.1, 0.7), 0.9),
    "Gompertz": (dist.Gompertz, (0.7, 0.9), 0.8),
    "Gumbel": (dist.Gumbel, (0.4, 1.2), 0.5),
    "HalfCauchy": (dist.HalfCauchy, (0.9,), 0.7),
    "HalfNormal": (dist.HalfNormal, (0.9,), 0.7),
    "InverseGamma": (dist.InverseGamma, (1.3, 0.8), 0.9),
    "Kumaraswamy": (dist.Kumaraswamy, (1.2, 0.8), 0.4),
    "Laplace": (dist.Laplace, (0.5, 0.8), 0.5),
    "LeftTruncatedDistribution": (
        lambda m: dist.LeftTruncatedDistribution(dist.Normal(m, 1.0), low=0.0),
        (0.5,),
        0.6,
    ),
    "Levy": (lambda c: dist.Levy(0.0, c), (0.8,), 0.9),
    "Logistic": (dist.Logistic, (0.4, 0.8), 0.4),
    "LogNormal": (dist.LogNormal, (0.3, 0.9), 0.8),
    "LogUniform": (lambda h: dist.LogUniform(0.01, 4 + h), (1.0,), 0.9),
    "LowerTruncatedPowerLaw": (lambda a: dist.LowerTruncatedPowerLaw(-1 - a, 0.1), (1.0,), 1.2),
    "MixtureSameFamily": (
        lambda a, b: dist.MixtureSameFamily(
            dist.Categorical(jnp.array([0.3, 0.7])), dist.Normal(jnp.stack([a, -b]), 0.5)
        ),
        (0.5, 0.4),
        0.1,
    ),
    "Normal": (dist.Normal, (0.3, 0.9), 0.5),
    "Pareto": (lambda s, a: dist.Pareto(0.1 * s, a), (0.3, 1.2), 0.9),
    "RelaxedBernoulli": (lambda p: dist.RelaxedBernoulli(0.7, probs=0.5 * p), (0.7,), 0.4),
    "RightTruncatedDistribution": (
        lambda m: dist.RightTruncatedDistribution(dist.Normal(m, 1.0), high=9.0),
        (0.5,),
        0.6,
    ),
    "SoftLaplace": (dist.SoftLaplace, (0.4, 0.9), 0.4),
    "StudentT": (dist.StudentT, (2.5, 0.3, 0.8), 0.4),
    "TruncatedCauchy": (lambda m: dist.TruncatedCauchy(m, 1.0, low=0.0, high=9.0), (0.5,), 0.6),
    "TruncatedNormal": (lambda m, s: dist.TruncatedNormal(m, s, low=0.0, high=9.0), (0.5, 0.8), 0.6),
    "Uniform": (lambda h: dist.Uniform(0.0, 5 + h), (0.8,), 0.7),
    "VonMises": (dist.VonMises, (0.3, 3.5), 0.4),
    "Weibull": (dist.Weibull, (0.9, 1.2), 0.7),
    # Observed whole numbers: only the parameters vary.
    "Bernoulli": (lambda p: dist.Bernoulli(0.5 * p), (0.5,), 1),
    "Binomial": (lambda p: dist.Binomial(5, 0.5 * p), (0.5,), 2),
    "BetaBinomial": (lambda a, b: dist.BetaBinomial(a, b, 5), (0.8, 1.3), 2),
    "GammaPoisson": (dist.GammaPoisson, (0.8, 1.3), 2),
    "Geometric": (lambda p: dist.Geometric(0.5 * p), (0.5,), 3),
    "NegativeBinomial2": (dist.NegativeBinomial2, (1.3, 0.8), 2),
    "OrderedLogistic": (lambda p, c: dist.OrderedLogistic(p, jnp.stack([-c, 0 * c, c])), (0.5, 0.9), 2),
    "Poisson": (dist.Poisson, (1.3,), 2),
    "ZeroInflatedPoisson": (lambda g, r: dist.ZeroInflatedPoisson(0.5 * g, rate=r), (0.5, 1.3), 0),
    "LeftCensoredDistribution": (
        lambda m: dist.LeftCensoredDistribution(dist.Normal(m, 1.0), censored=jnp.array(True)),
        (0.5,),
        0.6,
    ),
}


def jumps(function, start):
    """The switches of a function that jump between points around a start."""
    start = np.asarray(start, float)
    with double_precision():
        graph = Graph.of(jax.make_jaxpr(lambda u: [function(u)])(start))

        def one(u):
            (value,), marks = evaluate_marked(graph, graph.consts, [u])
            return value, jnp.concatenate([row for row, _ in marks]) if marks else jnp.zeros(0, jnp.uint32)

        compiled = jax.jit(jax.vmap(one), compiler_options=FAST_TO_COMPILE)

        def evaluate(vectors):
            rows = np.resize(np.arange(len(vectors)), max(4 * POINTS, len(vectors)))
            found, marks = (np.asarray(x)[: len(vectors)] for x in compiled(vectors[rows]))
            return Marked(found, np.zeros(len(found)), np.ones(len(found), bool), marks)
            yield  # answers at once

        # Near enough to stay inside of supports and of what parameters may be.
        away = np.random.default_rng(0).normal(size=(POINTS, len(start)))
        points = start * np.exp(0.05 * np.clip(away, -2, 2))
        marks = answered(evaluate(points), list).marks
        return answered(tried_switches(evaluate, points, marks), list).jumping


@pytest.mark.parametrize("name", NUMPYRO)
def test_numpyro(name):
    make, parameters, value = NUMPYRO[name]
    if isinstance(value, int):
        assert not jumps(lambda u: make(*u).log_prob(value), parameters)
    else:
        assert not jumps(lambda u: make(*u[:-1]).log_prob(u[-1]), (*parameters, value))


@pytest.mark.trust
@pytest.mark.parametrize("name", sorted(EXAMPLES.keys() - LOOKING))
def test_pyro(name):
    with double_precision(), pyro.validation_enabled(False):
        for example in EXAMPLES[name]:
            function, inputs, smooth = as_function(example)
            flat = flatten(function, inputs)
            arrays = [jnp.asarray(tensor.detach().numpy()) for tensor in inputs]
            sizes = [array.size if s else 0 for array, s in zip(arrays, smooth, strict=True)]
            ends = np.cumsum([0, *sizes])

            def density(u, flat=flat, arrays=arrays, smooth=smooth, ends=ends):
                values = [
                    u[ends[i] : ends[i + 1]].reshape(array.shape) if smooth[i] else array
                    for i, array in enumerate(arrays)
                ]
                return jnp.sum(interpret(flat, values)[flat.outputs[0]])

            start = np.concatenate(
                [np.zeros(0), *(np.ravel(a) for a, s in zip(arrays, smooth, strict=True) if s)]
            )
            if len(start):
                assert not jumps(density, start)
