"""Hierarchical models: normal given their scales, over which answers integrate."""

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

# Effects of coaching in eight schools, with their standard errors (Rubin, 1981).
EFFECTS = np.array([28, 8, -3, 7, -1, 1, 18, 12.0])
ERRORS = np.array([15, 10, 16, 11, 9, 11, 10, 18.0])


def schools(y, errors):
    """One effect for all, an effect for each, or effects around a common mean."""
    pooling = numpyro.sample("pooling", dist.Categorical(probs=jnp.ones(3) / 3))
    mean, spread = 0.0, 20.0
    if pooling != 1:
        mean = numpyro.sample("mean", dist.Normal(0, 10))
    if pooling == 2:
        spread = numpyro.sample("spread", dist.HalfCauchy(5.0))
    with numpyro.plate("schools", len(y)):
        effect = mean if pooling == 0 else numpyro.sample("effect", dist.Normal(mean, spread))
        numpyro.sample("y", dist.Normal(effect, errors), obs=y)


def schools_pyro(y, errors):
    pooling = int(pyro.sample("pooling", pdist.Categorical(torch.ones(3))))
    mean, spread = torch.tensor(0.0), torch.tensor(20.0)
    if pooling != 1:
        mean = pyro.sample("mean", pdist.Normal(0, 10))
    if pooling == 2:
        spread = pyro.sample("spread", pdist.HalfCauchy(5.0))
    with pyro.plate("schools", len(y)):
        effect = mean if pooling == 0 else pyro.sample("effect", pdist.Normal(mean, spread))
        pyro.sample("y", pdist.Normal(effect, errors), obs=y)


def schools_answer():
    def given(spread, mean_scale):
        covariance = np.diag(ERRORS**2 + spread**2) + mean_scale**2
        return stats.multivariate_normal.logpdf(EFFECTS, np.zeros(8), covariance)

    def partial(log_spreads):
        spreads = np.exp(log_spreads)
        logs = [given(spread, 10) for spread in spreads]
        return np.array(logs) + stats.halfcauchy.logpdf(spreads, 0, 5) + log_spreads

    logs = [given(0, 10), given(20, 0), exact.log_integral(partial, -18, 14, panels=64)]
    return {k: np.log(1 / 3) + log for k, log in enumerate(logs)}


GROUP = np.repeat(np.arange(5), 3)
DOSE = np.tile([-1.0, 0.0, 1.0], 5)
RESPONSE = np.array([0.1, 0.9, 1.2, -0.8, 0.3, 0.6, 0.2, 0.4, 1.6, -0.3, -0.1, 1.1, 0.4, 1.3, 1.2])


def intercepts(dose, y):
    """A regression with or without an intercept for each group; deviations are written non-centred."""
    intercept = numpyro.sample("intercept", dist.Normal(0, 1))
    slope = numpyro.sample("slope", dist.Normal(0, 1))
    mean = intercept + slope * dose
    if numpyro.sample("grouped", dist.Bernoulli(0.5)):
        spread = numpyro.sample("spread", dist.HalfNormal(1.0))
        with numpyro.plate("groups", 5):
            deviation = numpyro.sample("deviation", dist.Normal(0, 1))
        mean = mean + spread * deviation[GROUP]
    with numpyro.plate("patients", len(y)):
        numpyro.sample("y", dist.Normal(mean, 0.4), obs=y)


def intercepts_pyro(dose, y):
    intercept = pyro.sample("intercept", pdist.Normal(0, 1))
    slope = pyro.sample("slope", pdist.Normal(0, 1))
    mean = intercept + slope * dose
    if pyro.sample("grouped", pdist.Bernoulli(0.5)):
        spread = pyro.sample("spread", pdist.HalfNormal(1.0))
        with pyro.plate("groups", 5):
            deviation = pyro.sample("deviation", pdist.Normal(0.0, 1.0))
        mean = mean + spread * deviation[torch.tensor(GROUP)]
    with pyro.plate("patients", len(y)):
        pyro.sample("y", pdist.Normal(mean, 0.4), obs=y)


def intercepts_answer():
    line = np.stack([np.ones_like(DOSE), DOSE], axis=1)
    design = np.concatenate([line, np.eye(5)[GROUP]], axis=1)

    def given(spreads):
        logs = [exact.linear(RESPONSE, design, [1, 1, *[spread] * 5], 0.4) for spread in spreads]
        return np.array(logs) + stats.halfnorm.logpdf(spreads)

    return {
        0: np.log(0.5) + exact.linear(RESPONSE, line, 1.0, 0.4),
        1: np.log(0.5) + exact.log_integral(given, 0, 8, panels=16),
    }


PAIR = np.array([
    [0.9, -0.2], [-1.1, 0.4], [0.3, 1.3], [-0.5, -0.8], [1.4, 0.6], [-0.8, -1.2], [0.2, 0.9], [-0.4, -1.0],
])  # fmt: skip
SPARSE = 1.4 * PAIR[:, 0] + np.array([0.2, -0.3, 0.1, 0.4, -0.2, -0.1, 0.3, -0.4])


def horseshoe(x, y):
    """Coefficients of one scale, or each of its own half-Cauchy scale."""
    if numpyro.sample("sparse", dist.Bernoulli(0.5)):
        scale = numpyro.sample("scale", dist.HalfCauchy(0.5).expand([2]).to_event(1))
    else:
        scale = jnp.ones(2)
    weight = numpyro.sample("weight", dist.Normal(0, scale).to_event(1))
    numpyro.sample("y", dist.Normal(x @ weight, 0.5), obs=y)


def horseshoe_pyro(x, y):
    if pyro.sample("sparse", pdist.Bernoulli(0.5)):
        scale = pyro.sample("scale", pdist.HalfCauchy(0.5).expand([2]).to_event(1))
    else:
        scale = torch.ones(2)
    weight = pyro.sample("weight", pdist.Normal(0, scale).to_event(1))
    with pyro.plate("rows", len(y)):
        pyro.sample("y", pdist.Normal(x @ weight, 0.5), obs=y)


def horseshoe_answer():
    # Over the angle whose tangent is half-Cauchy, of even density; both scales on one grid of panels.
    nodes, masses = np.polynomial.legendre.leggauss(20)
    edges = np.linspace(0, 1, 5)
    shares = np.concatenate([low + (nodes + 1) / 2 / 4 for low in edges[:-1]])
    log_masses = np.log(np.tile(masses / 2 / 4, 4))
    scales = 0.5 * np.tan(np.pi / 2 * shares)
    logs = np.array([[exact.linear(SPARSE, PAIR, [a, b], 0.5) for b in scales] for a in scales])
    return {
        0: np.log(0.5) + exact.linear(SPARSE, PAIR, 1.0, 0.5),
        1: np.log(0.5) + exact.logsumexp(logs + log_masses[:, None] + log_masses),
    }


FAMILY = {"family": "hierarchies", "method": "quadrature"}
CASES = [
    *both(
        schools, schools_pyro, args=(EFFECTS, ERRORS), key=pinned("pooling"), answer=schools_answer, **FAMILY
    ),
    *both(
        intercepts,
        intercepts_pyro,
        args=(DOSE, RESPONSE),
        key=pinned("grouped"),
        answer=intercepts_answer,
        **FAMILY,
    ),
    *both(
        horseshoe,
        horseshoe_pyro,
        args=(PAIR, SPARSE),
        key=pinned("sparse"),
        answer=horseshoe_answer,
        **FAMILY,
    ),
]
