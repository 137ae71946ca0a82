"""Every distribution of Pyro: its log-density through the engine is PyTorch's own, and so is the gradient."""

import inspect
import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyro
import pyro.distributions as dist
import pytest
import torch
from torch.distributions import Distribution

from pathmix.frontends.pyro.flatten import flatten
from pathmix.frontends.pyro.lowering import TABLE
from tests.frontends.pyro.against_torch import double_precision, in_jax, in_torch

DOCS = Path(__file__).parents[3] / "docs" / "pyro.md"


@dataclass(frozen=True)
class Example:
    """A distribution made from tensors of parameters, and a value of it.

    A `discrete` value is an input without a gradient; an `observed` one is no input at all. With
    `flat`, PyTorch itself cannot differentiate the density.
    """

    make: Callable[..., Distribution]
    parameters: tuple[torch.Tensor, ...]
    value: torch.Tensor
    discrete: bool = False
    observed: bool = False
    flat: bool = False


def v(*numbers):
    return torch.tensor(numbers, dtype=torch.float64)


def of(make, *parameters, at, **options):
    tensors = [torch.as_tensor(p, dtype=torch.float64) for p in parameters]
    value = torch.as_tensor(at, dtype=torch.float64 if isinstance(at, float) else None)
    return Example(make, tuple(tensors), value, **options)


def counts(make, *parameters, at, **options):
    return of(make, *parameters, at=at, discrete=True, **options)


def spd(a):
    return a @ a.mT + torch.eye(a.shape[-1], dtype=a.dtype)


def factor(a):
    return a.tril(-1) + torch.diag_embed(a.diagonal(dim1=-2, dim2=-1).exp())


MATRIX = v([0.3, 0.0, 0.1], [-0.4, 0.2, 0.5], [0.6, -0.2, 0.4])
CORRELATION = v([1.0, 0.3, -0.2], [0.3, 1.0, 0.4], [-0.2, 0.4, 1.0])
STEPS = v([0.1, -0.2], [0.7, 0.4], [-1.0, 0.3], [0.5, 0.9])
HIDDEN, OBSERVED = v([0.7, 0.2], [-0.1, 0.5]), v([1.0, 0.3], [0.2, -0.8])


def gaussian_hmm(hidden, noise, observed):
    two = torch.zeros(2)
    return dist.GaussianHMM(
        dist.MultivariateNormal(two, torch.eye(2)),
        hidden,
        dist.MultivariateNormal(two, spd(noise)),
        observed,
        dist.Normal(two, 0.5).to_event(1),
        duration=2,
    )


def gamma_gaussian_hmm(rate, hidden, noise):
    two = torch.zeros(2)
    return dist.GammaGaussianHMM(
        dist.Gamma(2.0, rate),
        dist.MultivariateNormal(two, torch.eye(2)),
        hidden,
        dist.MultivariateNormal(two, spd(noise)),
        hidden,
        dist.MultivariateNormal(two, torch.eye(2)),
        duration=2,
    )


def independent_hmm(transition, scale):
    start, steps = torch.zeros(2, 1), torch.zeros(2, 1, 1)
    return dist.IndependentHMM(
        dist.GaussianHMM(
            dist.MultivariateNormal(start, torch.ones(2, 1, 1)),
            transition.reshape(2, 1, 1, 1),
            dist.MultivariateNormal(steps, torch.ones(2, 1, 1, 1)),
            torch.ones(2, 1, 1, 1),
            dist.Normal(steps, scale).to_event(1),
            duration=2,
        )
    )


def lkj_corr_cholesky(eta):
    with pytest.warns(FutureWarning, match="deprecated"):
        return dist.LKJCorrCholesky(3, eta)


EXAMPLES = {
    "AVFMultivariateNormal": [
        of(
            lambda m, a: dist.AVFMultivariateNormal(m, factor(a), torch.zeros(2, 1, 3)),
            v(0.1, -0.3, 0.5),
            MATRIX,
            at=v(0.4, 0.2, -1.0),
        )
    ],
    "AffineBeta": [of(dist.AffineBeta, 2.0, 3.0, -1.0, 2.5, at=0.3)],
    "AsymmetricLaplace": [of(dist.AsymmetricLaplace, 0.2, 1.3, 0.7, at=v(-1.0, 2.0))],
    "Bernoulli": [
        counts(dist.Bernoulli, v(0.2, 0.7), at=v(0.0, 1.0)),
        counts(lambda logits: dist.Bernoulli(logits=logits), v(-0.4, 3.0), at=v(0.0, 1.0)),
    ],
    "Beta": [of(dist.Beta, v(0.5, 2.0), 3.0, at=v(0.3, 0.8))],
    "BetaBinomial": [counts(lambda a, b: dist.BetaBinomial(a, b, 7), v(0.5, 2.0), 3.0, at=v(0.0, 5.0))],
    "Binomial": [
        counts(lambda p: dist.Binomial(7, p), v(0.2, 0.7), at=v(0.0, 5.0)),
        counts(lambda logits: dist.Binomial(7, logits=logits), v(-0.4, 3.0), at=v(7.0, 5.0)),
    ],
    "Categorical": [
        counts(dist.Categorical, v(0.2, 0.5, 0.3), at=torch.tensor([0, 2])),
        counts(
            lambda logits: dist.Categorical(logits=logits),
            v([0.1, 2.0], [-1.0, 0.4]),
            at=torch.tensor([[0], [1]]),
        ),
    ],
    "Cauchy": [of(dist.Cauchy, 0.2, v(1.3, 0.4), at=v(-1.0, 2.0))],
    "Chi2": [of(dist.Chi2, v(1.3, 4.0), at=v(0.7, 2.0))],
    "CoalescentTimes": [
        of(lambda rate: dist.CoalescentTimes(v(0.0, 1.0, 2.0, 0.5), rate), 0.7, at=v(-2.0, -1.5, -0.3))
    ],
    "CoalescentTimesWithRate": [
        of(
            lambda rate: dist.CoalescentTimesWithRate(v(0.0, 1.0, 2.0, 0.5), rate),
            v(0.7, 0.9, 1.1),
            at=v(-2.0, -1.5, 0.3),
        )
    ],
    "ContinuousBernoulli": [
        of(dist.ContinuousBernoulli, v(0.2, 0.5, 0.8), at=v(0.3, 0.6, 0.9)),
        of(lambda logits: dist.ContinuousBernoulli(logits=logits), 0.7, at=0.3),
    ],
    "Delta": [of(lambda x, d: dist.Delta(x, d), v(0.3, 0.4), 0.2, at=v(0.3, 1.0))],
    "Dirichlet": [of(dist.Dirichlet, v([0.5, 2.0, 1.0], [1.0, 1.0, 3.0]), at=v(0.2, 0.5, 0.3))],
    "DirichletMultinomial": [
        counts(lambda a: dist.DirichletMultinomial(a, 6), v(0.5, 2.0, 1.0), at=v(1.0, 0.0, 5.0)),
        counts(
            lambda a: dist.DirichletMultinomial(a, 6, is_sparse=True),
            v(0.5, 2.0, 1.0),
            at=v(1.0, 0.0, 5.0),
            observed=True,
        ),
    ],
    "DiscreteHMM": [
        of(
            lambda i, t, m: dist.DiscreteHMM(i, t, dist.Normal(m, 1.0), duration=4),
            v(0.3, -0.2),
            v([1.0, 0.0], [0.2, 0.5]),
            v(-1.0, 1.0),
            at=STEPS[:, 0],
        ),
        counts(
            lambda i, t, m: dist.DiscreteHMM(i, t, dist.Categorical(logits=m), duration=4),
            v(0.3, -0.2),
            v([1.0, 0.0], [0.2, 0.5]),
            MATRIX[:2],
            at=torch.tensor([0, 2, 1, 1]),
        ),
    ],
    "Empirical": [counts(lambda w: dist.Empirical(v(0.0, 1.0, 1.0), w), v(0.1, 0.4, 0.2), at=1.0)],
    "ExpandedDistribution": [
        of(
            lambda m, s: dist.ExpandedDistribution(dist.Normal(m, s), [3, 2]),
            v(0.1, 0.4),
            1.2,
            at=v(0.3, 0.5),
        )
    ],
    "Exponential": [of(dist.Exponential, v(0.3, 2.0), at=v(0.7, 0.1))],
    "ExtendedBetaBinomial": [
        counts(lambda a, b: dist.ExtendedBetaBinomial(a, b, 7), v(0.5, 2.0), 3.0, at=v(2.0, 9.0))
    ],
    "ExtendedBinomial": [counts(lambda p: dist.ExtendedBinomial(7, p), v(0.2, 0.7), at=v(2.0, -1.0))],
    "FisherSnedecor": [of(dist.FisherSnedecor, 2.5, v(3.0, 7.0), at=v(0.7, 2.0))],
    "FoldedDistribution": [
        of(lambda m, s: dist.FoldedDistribution(dist.Normal(m, s)), 0.3, 1.2, at=v(0.4, 2.0))
    ],
    "Gamma": [of(dist.Gamma, v(0.5, 3.0), 2.0, at=v(0.7, 2.0))],
    "GammaGaussianHMM": [of(gamma_gaussian_hmm, 1.5, HIDDEN, MATRIX[:2, :2], at=STEPS[:2])],
    "GammaPoisson": [counts(dist.GammaPoisson, v(0.5, 3.0), 2.0, at=v(0.0, 4.0))],
    "GaussianHMM": [of(gaussian_hmm, HIDDEN, MATRIX[:2, :2], OBSERVED, at=STEPS[:2])],
    "GaussianMRF": [
        of(
            lambda a, b: dist.GaussianMRF(
                dist.MultivariateNormal(torch.zeros(2), spd(a)),
                dist.MultivariateNormal(torch.zeros(1, 4), spd(b)),
                dist.MultivariateNormal(torch.zeros(1, 4), torch.eye(4)),
            ),
            MATRIX[:2, :2],
            torch.linspace(-1, 1, 16).reshape(4, 4),
            at=STEPS[:2],
        )
    ],
    "GaussianScaleMixture": [
        of(
            dist.GaussianScaleMixture,
            v(0.6, 1.2),
            v(0.1, -0.4, 0.3),
            v(0.5, 1.0, 2.0),
            at=v(0.3, -0.7),
            flat=True,
        )
    ],
    "GeneralizedPareto": [of(dist.GeneralizedPareto, 0.2, 1.3, v(0.5, -0.3), at=v(0.7, 2.0))],
    "Geometric": [
        counts(dist.Geometric, v(0.2, 0.7), at=v(0.0, 4.0)),
        counts(lambda logits: dist.Geometric(logits=logits), 0.4, at=3.0),
    ],
    "GroupedNormalNormal": [
        of(
            lambda m, s, o: dist.GroupedNormalNormal(m, s, o, torch.tensor([0, 1, 1, 0])),
            v(0.2, 0.1),
            v(1.3, 0.8),
            v(0.5, 0.6, 0.7, 0.8),
            at=v(0.3, -0.2, 0.7, 1.0),
        )
    ],
    "Gumbel": [of(dist.Gumbel, 0.2, v(1.3, 0.4), at=v(-1.0, 2.0))],
    "HalfCauchy": [of(dist.HalfCauchy, v(1.3, 0.4), at=v(0.7, 2.0))],
    "HalfNormal": [of(dist.HalfNormal, v(1.3, 0.4), at=v(0.7, 2.0))],
    "ImproperUniform": [
        of(lambda: dist.ImproperUniform(dist.constraints.positive, (), (2,)), at=v(0.7, 2.0))
    ],
    "Independent": [
        of(lambda m, s: dist.Independent(dist.Normal(m, s), 1), v(0.1, 0.4), 1.2, at=v(0.3, 0.5))
    ],
    "IndependentHMM": [of(independent_hmm, v(0.5, 0.7), 0.8, at=STEPS[:2])],
    "InverseGamma": [of(dist.InverseGamma, v(0.5, 3.0), 2.0, at=v(0.7, 2.0))],
    "Kumaraswamy": [of(dist.Kumaraswamy, v(0.5, 3.0), 2.0, at=v(0.7, 0.2))],
    "LKJ": [of(lambda c: dist.LKJ(3, c), 1.7, at=CORRELATION)],
    "LKJCholesky": [of(lambda c: dist.LKJCholesky(3, c), v(1.7, 0.8), at=torch.linalg.cholesky(CORRELATION))],
    "LKJCorrCholesky": [of(lkj_corr_cholesky, 1.7, at=torch.linalg.cholesky(CORRELATION))],
    "Laplace": [of(dist.Laplace, 0.2, v(1.3, 0.4), at=v(-1.0, 2.0))],
    "LogNormal": [of(dist.LogNormal, 0.2, v(1.3, 0.4), at=v(0.7, 2.0))],
    "LogNormalNegativeBinomial": [
        counts(dist.LogNormalNegativeBinomial, v(3.0, 7.0), 0.4, 0.3, at=v(0.0, 4.0))
    ],
    "Logistic": [of(dist.Logistic, 0.2, v(1.3, 0.4), at=v(-1.0, 2.0))],
    "LogisticNormal": [of(dist.LogisticNormal, v(0.2, -0.4), v(1.3, 0.4), at=v(0.2, 0.5, 0.3))],
    "LowRankMultivariateNormal": [
        of(
            dist.LowRankMultivariateNormal,
            v(0.1, -0.3, 0.5),
            MATRIX[:, :2],
            v(0.4, 0.7, 1.1),
            at=v(0.4, 0.2, -1.0),
        )
    ],
    "MaskedDistribution": [
        of(
            lambda m, s: dist.MaskedDistribution(dist.Normal(m, s), torch.tensor([True, False])),
            v(0.1, 0.4),
            1.2,
            at=v(0.3, 0.5),
        )
    ],
    "MaskedMixture": [
        of(
            lambda m, s: dist.MaskedMixture(
                torch.tensor([True, False]), dist.Normal(m, s), dist.Laplace(m, s)
            ),
            v(0.1, 0.4),
            1.2,
            at=v(0.3, 0.5),
        )
    ],
    "MixtureOfDiagNormals": [
        of(dist.MixtureOfDiagNormals, MATRIX[:2], MATRIX[:2].exp(), v(0.3, -0.1), at=v(0.4, 0.2, -1.0))
    ],
    "MixtureOfDiagNormalsSharedCovariance": [
        of(
            dist.MixtureOfDiagNormalsSharedCovariance,
            MATRIX[:2],
            v(0.4, 0.7, 1.1),
            v(0.3, -0.1),
            at=v(0.4, 0.2, -1.0),
        )
    ],
    "MixtureSameFamily": [
        of(
            lambda logits, m, s: dist.MixtureSameFamily(dist.Categorical(logits=logits), dist.Normal(m, s)),
            v(0.3, -0.1, 0.4),
            v(-1.0, 0.5, 2.0),
            0.7,
            at=v(0.4, -2.0),
        )
    ],
    "Multinomial": [
        counts(lambda p: dist.Multinomial(6, p), v(0.2, 0.5, 0.3), at=v(1.0, 0.0, 5.0)),
        counts(lambda logits: dist.Multinomial(6, logits=logits), v(0.2, 0.5, 0.3), at=v(1.0, 0.0, 5.0)),
    ],
    "MultivariateNormal": [
        of(
            lambda m, a: dist.MultivariateNormal(m, spd(a)),
            v(0.1, -0.3, 0.5),
            MATRIX,
            at=v([0.4, 0.2, -1.0], [1.0, 2.0, 0.1]),
        ),
        of(
            lambda m, a: dist.MultivariateNormal(m, precision_matrix=spd(a)),
            v(0.1, -0.3, 0.5),
            MATRIX,
            at=v(0.4, 0.2, -1.0),
        ),
        of(
            lambda m, a: dist.MultivariateNormal(m, scale_tril=factor(a)),
            v(0.1, -0.3, 0.5),
            MATRIX,
            at=v(0.4, 0.2, -1.0),
        ),
    ],
    "MultivariateStudentT": [
        of(
            lambda n, m, a: dist.MultivariateStudentT(n, m, factor(a)),
            3.5,
            v(0.1, -0.3, 0.5),
            MATRIX,
            at=v(0.4, 0.2, -1.0),
        )
    ],
    "NanMaskedMultivariateNormal": [
        of(
            lambda m, a: dist.NanMaskedMultivariateNormal(m, spd(a)),
            v(0.1, -0.3, 0.5),
            MATRIX,
            at=v([0.4, math.nan, -1.0], [1.0, 2.0, 0.1]),
            observed=True,
        )
    ],
    "NanMaskedNormal": [
        of(dist.NanMaskedNormal, v(0.1, -0.3), 0.7, at=v([0.4, math.nan], [1.0, 2.0]), observed=True),
        of(dist.NanMaskedNormal, 0.1, 0.7, at=v(1.0, 2.0)),
    ],
    "NegativeBinomial": [
        counts(dist.NegativeBinomial, v(0.5, 3.0), 0.3, at=v(0.0, 4.0)),
        counts(lambda n, logits: dist.NegativeBinomial(n, logits=logits), 2.5, 0.3, at=v(0.0, 4.0)),
    ],
    "Normal": [of(dist.Normal, v(0.2, 0.5), v(1.3, 0.4), at=v([-1.0], [2.0]))],
    "OMTMultivariateNormal": [
        of(
            lambda m, a: dist.OMTMultivariateNormal(m, factor(a)),
            v(0.1, -0.3, 0.5),
            MATRIX,
            at=v(0.4, 0.2, -1.0),
        )
    ],
    "OneHotCategorical": [
        counts(dist.OneHotCategorical, v(0.2, 0.5, 0.3), at=v([0.0, 1.0, 0.0], [1.0, 0.0, 0.0]))
    ],
    "OneHotCategoricalStraightThrough": [
        counts(dist.OneHotCategoricalStraightThrough, v(0.2, 0.5, 0.3), at=v(0.0, 1.0, 0.0))
    ],
    "OneOneMatching": [
        counts(dist.OneOneMatching, MATRIX, at=torch.tensor([1, 0, 2])),
        counts(lambda logits: dist.OneOneMatching(logits, bp_iters=5), MATRIX, at=torch.tensor([1, 0, 2])),
    ],
    "OneTwoMatching": [
        counts(dist.OneTwoMatching, torch.linspace(-1, 1, 8).reshape(4, 2), at=torch.tensor([1, 0, 1, 0])),
        counts(
            lambda logits: dist.OneTwoMatching(logits, bp_iters=5),
            torch.linspace(-1, 1, 8).reshape(4, 2),
            at=torch.tensor([1, 0, 1, 0]),
        ),
    ],
    "OrderedLogistic": [
        counts(dist.OrderedLogistic, v(0.2, 0.9), v(-1.0, 0.5, 1.5), at=torch.tensor([0, 3]))
    ],
    "Pareto": [of(dist.Pareto, v(0.5, 1.3), 2.0, at=v(0.7, 2.0))],
    "Poisson": [
        counts(dist.Poisson, v(0.5, 3.0), at=v(0.0, 4.0)),
        counts(lambda r: dist.Poisson(r, is_sparse=True), v(0.5, 3.0), at=v(0.0, 4.0), observed=True),
    ],
    "ProjectedNormal": [
        of(dist.ProjectedNormal, c, at=c.flip(0) / c.norm()) for c in (v(0.7, -0.4), v(0.7, -0.4, 0.2))
    ],
    "Rejector": [
        of(
            lambda r: dist.Rejector(dist.Exponential(r), lambda x: -x, torch.log(r / (1 + r))),
            0.7,
            at=v(0.4, 2.0),
        )
    ],
    "RelaxedBernoulli": [of(dist.RelaxedBernoulli, 0.7, v(0.2, 0.7), at=v(0.3, 0.6))],
    "RelaxedBernoulliStraightThrough": [
        of(dist.RelaxedBernoulliStraightThrough, 0.7, v(0.2, 0.7), at=v(0.3, 0.6))
    ],
    "RelaxedOneHotCategorical": [
        of(dist.RelaxedOneHotCategorical, 0.7, v(0.2, 0.5, 0.3), at=v(0.1, 0.2, 0.7))
    ],
    "RelaxedOneHotCategoricalStraightThrough": [
        of(dist.RelaxedOneHotCategoricalStraightThrough, 0.7, v(0.2, 0.5, 0.3), at=v(0.1, 0.2, 0.7))
    ],
    "SineBivariateVonMises": [
        of(
            lambda a, b, c, d, w: dist.SineBivariateVonMises(a, b, c, d, weighted_correlation=w),
            0.2,
            -0.5,
            2.0,
            3.0,
            0.4,
            at=v(0.3, 1.0),
        ),
        of(dist.SineBivariateVonMises, 0.2, -0.5, 2.0, 3.0, 0.4, at=v(0.3, 1.0)),
    ],
    "SineSkewed": [
        of(
            lambda m, k, s: dist.SineSkewed(dist.VonMises(m, k).to_event(1), s),
            v(0.2, -0.5),
            v(2.0, 3.0),
            v(0.3, -0.4),
            at=v(0.3, 1.0),
        )
    ],
    "SkewLogistic": [of(dist.SkewLogistic, 0.2, 1.3, 0.7, at=v(-1.0, 2.0))],
    "SoftAsymmetricLaplace": [of(dist.SoftAsymmetricLaplace, 0.2, 1.3, 0.7, 0.5, at=v(-1.0, 2.0))],
    "SoftLaplace": [of(dist.SoftLaplace, 0.2, 1.3, at=v(-1.0, 2.0))],
    "SpanningTree": [
        counts(
            dist.SpanningTree, v(0.1, -0.2, 0.3, 0.5, -0.4, 0.2), at=torch.tensor([[0, 1], [0, 2], [2, 3]])
        )
    ],
    "Stable": [of(dist.Stable, v(1.3, 0.8), 0.3, 1.2, 0.1, at=v(0.4, 2.0))],
    "StableWithLogProb": [of(dist.StableWithLogProb, v(1.3, 0.8), 0.3, 1.2, 0.1, at=v(0.4, 2.0))],
    "StudentT": [of(dist.StudentT, 3.5, 0.2, v(1.3, 0.4), at=v(-1.0, 2.0))],
    "TransformedDistribution": [
        of(
            lambda m, s: dist.TransformedDistribution(
                dist.Normal(m, s),
                [dist.transforms.SigmoidTransform(), dist.transforms.AffineTransform(1.0, 3.0)],
            ),
            0.2,
            v(1.3, 0.4),
            at=v(1.5, 2.0),
        )
    ],
    "TruncatedPolyaGamma": [of(lambda x: dist.TruncatedPolyaGamma(x), 0.3, at=v(0.4, 1.7))],
    "Uniform": [of(dist.Uniform, -1.0, v(2.0, 0.5), at=v(0.3, 0.1))],
    "Unit": [of(dist.Unit, v(0.3, 0.4), at=torch.zeros(2, 0, dtype=torch.float64))],
    "VonMises": [of(dist.VonMises, 0.2, v(1.3, 40.0), at=v(-1.0, 0.3))],
    "VonMises3D": [of(dist.VonMises3D, v(0.7, -0.4, 1.2), at=v(0.6, 0.0, 0.8))],
    "Weibull": [of(dist.Weibull, 1.3, v(0.7, 2.0), at=v(0.7, 2.0))],
    "Wishart": [
        of(lambda n, a: dist.Wishart(n, spd(a)), 4.5, MATRIX, at=spd(MATRIX.T)),
        of(lambda n, a: dist.Wishart(n, scale_tril=factor(a)), 4.5, MATRIX, at=spd(MATRIX.T)),
    ],
    "ZeroInflatedDistribution": [
        counts(lambda r, g: dist.ZeroInflatedDistribution(dist.Poisson(r), gate=g), 1.3, 0.3, at=v(0.0, 3.0))
    ],
    "ZeroInflatedNegativeBinomial": [
        counts(
            lambda n, logits, g: dist.ZeroInflatedNegativeBinomial(n, logits=logits, gate_logits=g),
            2.5,
            0.3,
            0.2,
            at=v(0.0, 3.0),
        )
    ],
    "ZeroInflatedPoisson": [
        counts(lambda r, g: dist.ZeroInflatedPoisson(r, gate=g), 1.3, 0.3, at=v(0.0, 3.0))
    ],
}

EXCEPTIONS = {
    "Distribution": "an abstract base class",
    "ExponentialFamily": "an abstract base class",
    "LinearHMM": "has no log_prob",
    "TorchDistribution": "an abstract base class",
}

# Those whose constructor or log_prob looks at its arguments, so that the path depends on them.
LOOKING = {
    "NanMaskedNormal",
    "OneOneMatching",
    "OneTwoMatching",
    "SineBivariateVonMises",
    "SineSkewed",
    "Stable",
    "StableWithLogProb",
    "Wishart",
}


@pytest.fixture(autouse=True)
def _as_while_tracing():
    with double_precision(), pyro.validation_enabled(False):
        yield


def exported():
    """Names of all distributions that Pyro offers."""
    everything = {name: getattr(dist, name) for name in dir(dist)}
    bases = (dist.Distribution, torch.distributions.Distribution)
    return {name for name, thing in everything.items() if inspect.isclass(thing) and issubclass(thing, bases)}


def as_function(example):
    """The log-density as a function of its inputs, the inputs, and which of them are smooth."""
    smooth = [not example.flat] * len(example.parameters)
    if example.observed:
        return lambda *p: [example.make(*p).log_prob(example.value)], example.parameters, smooth
    inputs = (*example.parameters, example.value)
    smooth.append(not (example.discrete or example.flat))
    return lambda *p: [example.make(*p[:-1]).log_prob(p[-1])], inputs, smooth


def test_every_distribution_has_an_example_or_a_reason():
    assert not EXAMPLES.keys() & EXCEPTIONS.keys()
    assert EXAMPLES.keys() | EXCEPTIONS.keys() == exported()


def test_the_documentation_names_every_exception():
    section = DOCS.read_text().split("## Distributions that cannot be lowered")[1].split("\n## ")[0]
    for name in EXCEPTIONS.keys() | LOOKING:
        assert f"`{name}`" in section


@pytest.mark.parametrize(("name", "index"), [(n, i) for n, e in EXAMPLES.items() for i in range(len(e))])
def test_log_density_and_gradient(name, index):
    function, inputs, smooth = as_function(EXAMPLES[name][index])
    expected = in_torch(function, inputs, smooth)
    graph = flatten(function, inputs)
    operations = {node.target for node in graph.operations} - {operator.getitem}
    assert operations <= set(TABLE)  # nothing that PyTorch has to be asked for
    assert name in LOOKING or not graph.looked_at

    found = in_jax(graph, inputs, smooth)
    for got, wanted in zip(found.values + found.gradients, expected.values + expected.gradients, strict=True):
        assert got.shape == wanted.shape
        assert np.isfinite(wanted).all() or name in {"Delta", "ExtendedBetaBinomial", "ExtendedBinomial"}
        np.testing.assert_allclose(got, wanted, rtol=1e-8, atol=1e-12)
