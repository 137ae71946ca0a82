"""Posteriors of awkward shapes on one path, beside a plain one on another."""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pyro
import pyro.distributions as pdist
import torch
from scipy import stats

from trust import exact
from trust.case import both, pinned

SMALL = np.array([0.2, -0.7, 1.3, 0.1, -0.4])


def funnel(y):
    """Neal's funnel, where the scale of the effects is unknown by orders of magnitude."""
    scale = 1.0
    if numpyro.sample("funnel", dist.Bernoulli(0.5)):
        scale = jnp.exp(numpyro.sample("v", dist.Normal(0, 3)) / 2)
    with numpyro.plate("effects", len(y)):
        effect = numpyro.sample("effect", dist.Normal(0, scale))
        numpyro.sample("y", dist.Normal(effect, 0.5), obs=y)


def funnel_pyro(y):
    scale = torch.ones(())
    if pyro.sample("funnel", pdist.Bernoulli(0.5)):
        scale = torch.exp(pyro.sample("v", pdist.Normal(0, 3)) / 2)
    with pyro.plate("effects", len(y)):
        effect = pyro.sample("effect", pdist.Normal(0, scale))
        pyro.sample("y", pdist.Normal(effect, 0.5), obs=y)


def funnel_answer():
    def given(v):
        effects = stats.norm.logpdf(SMALL[:, None], 0, np.sqrt(np.exp(v) + 0.25)).sum(axis=0)
        return effects + stats.norm.logpdf(v, 0, 3)

    plain = exact.normal(SMALL, 0, np.sqrt(1.25))
    return {0: np.log(0.5) + plain, 1: np.log(0.5) + exact.log_integral(given, -30, 30)}


def banana(y):
    """A thin curve with two arms."""
    a = numpyro.sample("a", dist.Normal(0, 1))
    if numpyro.sample("curved", dist.Bernoulli(0.5)):
        b = numpyro.sample("b", dist.Normal(a**2, 0.1))
    else:
        b = numpyro.sample("b", dist.Normal(a, 1))
    numpyro.sample("y", dist.Normal(b, 0.2), obs=y)


def banana_pyro(y):
    a = pyro.sample("a", pdist.Normal(0, 1))
    if pyro.sample("curved", pdist.Bernoulli(0.5)):
        b = pyro.sample("b", pdist.Normal(a**2, 0.1))
    else:
        b = pyro.sample("b", pdist.Normal(a, 1))
    pyro.sample("y", pdist.Normal(b, 0.2), obs=y)


BANANA = (1.1,)


def banana_answer():
    curve = exact.log_integral(
        lambda a: stats.norm.logpdf(a) + stats.norm.logpdf(BANANA[0], a**2, np.sqrt(0.05)), -6, 6
    )
    return {0: np.log(0.5) + exact.normal(BANANA[0], 0, np.sqrt(2.04)), 1: np.log(0.5) + curve}


def two_modes(y):
    """One path has two modes of unequal mass, far apart."""
    x = numpyro.sample("x", dist.Normal(0, 5))
    if numpyro.sample("ambiguous", dist.Bernoulli(0.5)):
        share = dist.Categorical(probs=jnp.array([0.35, 0.65]))
        sides = dist.Normal(x + jnp.array([-4.0, 4.0]), 0.5)
        numpyro.sample("y", dist.MixtureSameFamily(share, sides), obs=y)
    else:
        numpyro.sample("y", dist.Normal(x, 0.5), obs=y)


def two_modes_pyro(y):
    x = pyro.sample("x", pdist.Normal(0, 5))
    if pyro.sample("ambiguous", pdist.Bernoulli(0.5)):
        share = pdist.Categorical(torch.tensor([0.35, 0.65]))
        sides = pdist.Normal(x + torch.tensor([-4.0, 4.0]), 0.5)
        pyro.sample("y", pdist.MixtureSameFamily(share, sides), obs=y)
    else:
        pyro.sample("y", pdist.Normal(x, 0.5), obs=y)


MODES = (0.6,)


def two_modes_answer():
    spread = np.sqrt(25.25)
    modes = np.log([0.35, 0.65]) + stats.norm.logpdf(MODES[0], [-4, 4], spread)
    return {
        0: np.log(0.5) + exact.normal(MODES[0], 0, spread),
        1: np.log(0.5) + exact.logsumexp(modes),
    }


def square(y):
    """Only the square of a value is seen: two equal modes."""
    x = numpyro.sample("x", dist.Normal(0, 1.5))
    squared = numpyro.sample("squared", dist.Bernoulli(0.5))
    numpyro.sample("y", dist.Normal(x**2 if squared else x, 0.3), obs=y)


def square_pyro(y):
    x = pyro.sample("x", pdist.Normal(0, 1.5))
    squared = pyro.sample("squared", pdist.Bernoulli(0.5))
    pyro.sample("y", pdist.Normal(x**2 if squared else x, 0.3), obs=y)


SQUARE = (2.5,)


def square_answer():
    squared = exact.log_integral(
        lambda x: stats.norm.logpdf(x, 0, 1.5) + stats.norm.logpdf(SQUARE[0], x**2, 0.3), -9, 9
    )
    return {0: np.log(0.5) + exact.normal(SQUARE[0], 0, np.sqrt(2.34)), 1: np.log(0.5) + squared}


def heavy_prior(y):
    """A surprising value under a prior with heavy tails, and under one without."""
    if numpyro.sample("heavy", dist.Bernoulli(0.4)):
        mean = numpyro.sample("mean", dist.Cauchy(0, 1))
    else:
        mean = numpyro.sample("mean", dist.Normal(0, 2))
    numpyro.sample("y", dist.Normal(mean, 1.0), obs=y)


def heavy_prior_pyro(y):
    if pyro.sample("heavy", pdist.Bernoulli(0.4)):
        mean = pyro.sample("mean", pdist.Cauchy(0, 1))
    else:
        mean = pyro.sample("mean", pdist.Normal(0, 2))
    pyro.sample("y", pdist.Normal(mean, 1.0), obs=y)


SURPRISE = (5.0,)


def heavy_prior_answer():
    heavy = exact.log_integral(lambda m: stats.cauchy.logpdf(m) + stats.norm.logpdf(SURPRISE[0], m), -7, 17)
    return {0: np.log(0.6) + exact.normal(SURPRISE[0], 0, np.sqrt(5)), 1: np.log(0.4) + heavy}


def saturated(y):
    """The data say little beyond a sign: the posterior keeps the heavy tail of the prior."""
    strong = numpyro.sample("strong", dist.Bernoulli(0.5))
    x = numpyro.sample("x", dist.Cauchy(0, 2) if strong else dist.Normal(0, 0.5))
    numpyro.sample("y", dist.Normal(jnp.tanh(x), 0.4), obs=y)


def saturated_pyro(y):
    strong = pyro.sample("strong", pdist.Bernoulli(0.5))
    x = pyro.sample("x", pdist.Cauchy(0, 2) if strong else pdist.Normal(0, 0.5))
    with pyro.plate("data", len(y)):
        pyro.sample("y", pdist.Normal(torch.tanh(x), 0.4), obs=y)


SATURATED = np.array([0.5, 0.8])


def saturated_answer():
    def given(x):
        return stats.norm.logpdf(SATURATED[:, None], np.tanh(x), 0.4).sum(axis=0)

    # Over the angle whose tangent is Cauchy, of even density.
    strong = exact.log_integral(lambda angle: given(2 * np.tan(angle)) - np.log(np.pi), -np.pi / 2, np.pi / 2)
    weak = exact.log_integral(lambda x: given(x) + stats.norm.logpdf(x, 0, 0.5), -6, 6)
    return {0: np.log(0.5) + weak, 1: np.log(0.5) + strong}


def outliers(y):
    """Student noise has a mode at each of two groups of points; normal noise has one between."""
    robust = numpyro.sample("robust", dist.Bernoulli(0.5))
    mean = numpyro.sample("mean", dist.StudentT(3.0, 0.0, 2.0))
    with numpyro.plate("data", len(y)):
        noise = dist.StudentT(1.5, mean, 0.5) if robust else dist.Normal(mean, 3.0)
        numpyro.sample("y", noise, obs=y)


def outliers_pyro(y):
    robust = pyro.sample("robust", pdist.Bernoulli(0.5))
    mean = pyro.sample("mean", pdist.StudentT(3.0, 0.0, 2.0))
    with pyro.plate("data", len(y)):
        noise = pdist.StudentT(1.5, mean, 0.5) if robust else pdist.Normal(mean, 3.0)
        pyro.sample("y", noise, obs=y)


GROUPS = np.array([-1.9, -2.2, 2.0, 2.3, 2.1])


def outliers_answer():
    def robust(mean):
        return stats.t.logpdf(GROUPS[:, None], 1.5, mean, 0.5).sum(axis=0) + stats.t.logpdf(mean, 3, 0, 2)

    def plain(mean):
        return stats.norm.logpdf(GROUPS[:, None], mean, 3.0).sum(axis=0) + stats.t.logpdf(mean, 3, 0, 2)

    return {
        k: np.log(0.5) + exact.log_integral(given, -300, 300, panels=2_000)
        for k, given in enumerate((plain, robust))
    }


FAMILY = {"family": "shapes"}
CASES = [
    *both(
        funnel,
        funnel_pyro,
        args=(SMALL,),
        key=pinned("funnel"),
        answer=funnel_answer,
        method="quadrature",
        **FAMILY,
    ),
    *both(
        banana,
        banana_pyro,
        args=BANANA,
        key=pinned("curved"),
        answer=banana_answer,
        method="quadrature",
        **FAMILY,
    ),
    *both(
        two_modes,
        two_modes_pyro,
        args=MODES,
        key=pinned("ambiguous"),
        answer=two_modes_answer,
        method="analytic",
        **FAMILY,
    ),
    *both(
        square,
        square_pyro,
        args=SQUARE,
        key=pinned("squared"),
        answer=square_answer,
        method="quadrature",
        **FAMILY,
    ),
    *both(
        heavy_prior,
        heavy_prior_pyro,
        args=SURPRISE,
        key=pinned("heavy"),
        answer=heavy_prior_answer,
        method="quadrature",
        **FAMILY,
    ),
    *both(
        saturated,
        saturated_pyro,
        args=(SATURATED,),
        key=pinned("strong"),
        answer=saturated_answer,
        method="quadrature",
        **FAMILY,
    ),
    *both(
        outliers,
        outliers_pyro,
        args=(GROUPS,),
        key=pinned("robust"),
        answer=outliers_answer,
        method="quadrature",
        **FAMILY,
    ),
]
