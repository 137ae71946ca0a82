"""Mixtures of an unknown number of clusters: sums over all assignments of points to clusters."""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pyro
import pyro.distributions as pdist
import torch
from scipy import stats
from scipy.special import gammaln

from trust import exact
from trust.case import both, numpyro_only, pinned

POINTS = np.array([-2.9, -2.4, -2.2, 0.1, 0.4, 0.9, 2.6, 3.1, 3.3])
MOST = 14  # clusters that answers count; the prior mass beyond is below 1e-9


def poisson_clusters(y):
    clusters = int(numpyro.sample("others", dist.Poisson(1.0))) + 1
    means = jnp.stack([numpyro.sample(f"mean{k}", dist.Normal(0, 3)) for k in range(clusters)])
    share = dist.Categorical(probs=jnp.ones(clusters) / clusters)
    with numpyro.plate("data", len(y)):
        numpyro.sample("y", dist.MixtureSameFamily(share, dist.Normal(means, 0.7)), obs=y)


def poisson_clusters_pyro(y):
    clusters = int(pyro.sample("others", pdist.Poisson(1.0))) + 1
    means = torch.zeros(clusters)
    for k in range(clusters):
        means[k] = pyro.sample(f"mean{k}", pdist.Normal(0, 3))
    share = pdist.Categorical(torch.ones(clusters))
    with pyro.plate("data", len(y)):
        pyro.sample("y", pdist.MixtureSameFamily(share, pdist.Normal(means, 0.7)), obs=y)


def poisson_clusters_answer():
    sums = exact.partitions(exact.cluster_evidences(POINTS, 3.0, 0.7), MOST)
    return {
        k: stats.poisson.logpmf(k, 1.0) + np.log(total) - len(POINTS) * np.log(k + 1)
        for k, total in enumerate(sums)
    }


PLANE = np.array([[-1.4, 1.0], [-1.1, 1.5], [-0.4, 1.2], [-0.9, 0.5], [1.5, -0.7], [1.0, -1.3], [0.7, -0.2]])


def plane_clusters(y):
    """In two dimensions, every centre one site."""
    clusters = numpyro.sample("extra", dist.Categorical(probs=jnp.array([0.5, 0.3, 0.2]))) + 1
    centres = [
        numpyro.sample(f"centre{k}", dist.Normal(0, 1.5).expand([2]).to_event(1)) for k in range(clusters)
    ]
    share = dist.Categorical(probs=jnp.ones(len(centres)) / len(centres))
    cluster = dist.Normal(jnp.stack(centres), 0.6).to_event(1)
    numpyro.sample("y", dist.MixtureSameFamily(share, cluster).expand([len(y)]), obs=y)


def plane_clusters_pyro(y):
    clusters = pyro.sample("extra", pdist.Categorical(torch.tensor([0.5, 0.3, 0.2]))).item() + 1
    centres = [
        pyro.sample(f"centre{k}", pdist.Normal(0.0, 1.5).expand([2]).to_event(1)) for k in range(clusters)
    ]
    cluster = pdist.Independent(pdist.Normal(torch.stack(centres), 0.6), 1)
    with pyro.plate("data", len(y)):
        pyro.sample("y", pdist.MixtureSameFamily(pdist.Categorical(torch.ones(clusters)), cluster), obs=y)


def plane_clusters_answer():
    sums = exact.partitions(exact.cluster_evidences(PLANE, 1.5, 0.6), 3)
    prior = [0.5, 0.3, 0.2]
    return {k: np.log(prior[k] * total) - len(PLANE) * np.log(k + 1) for k, total in enumerate(sums)}


UNEVEN = np.array([-1.5, -1.2, 0.9, 1.1, 1.3, 1.4, 1.8, 0.6])


def unknown_shares(y):
    """Two or three clusters whose shares are unknown too."""
    clusters = 3 if numpyro.sample("three", dist.Bernoulli(0.5)) else 2
    shares = numpyro.sample("shares", dist.Dirichlet(jnp.full(clusters, 2.0)))
    with numpyro.plate("clusters", clusters):
        means = numpyro.sample("means", dist.Normal(0, 2))
    with numpyro.plate("data", len(y)):
        numpyro.sample(
            "y", dist.MixtureSameFamily(dist.Categorical(probs=shares), dist.Normal(means, 0.5)), obs=y
        )


def unknown_shares_pyro(y):
    clusters = 3 if pyro.sample("three", pdist.Bernoulli(0.5)) else 2
    shares = pyro.sample("shares", pdist.Dirichlet(torch.full((clusters,), 2.0)))
    with pyro.plate("clusters", clusters):
        means = pyro.sample("means", pdist.Normal(0.0, 2.0))
    with pyro.plate("data", len(y)):
        pyro.sample("y", pdist.MixtureSameFamily(pdist.Categorical(shares), pdist.Normal(means, 0.5)), obs=y)


def unknown_shares_answer():
    # Shares are integrated out: a cluster of m points counts gamma(2 + m) / gamma(2) more.
    sizes = np.array([mask.bit_count() for mask in range(2 ** len(UNEVEN))])
    evidences = exact.cluster_evidences(UNEVEN, 2.0, 0.5) * np.exp(gammaln(2.0 + sizes) - gammaln(2.0))
    sums = exact.partitions(evidences, 3)
    n = len(UNEVEN)
    return {k - 2: np.log(0.5 * sums[k - 1]) + gammaln(2.0 * k) - gammaln(2.0 * k + n) for k in (2, 3)}


def scattered(y):
    """Is a far point an outlier of its own, or is all of it wide? The spread has a half-Cauchy prior."""
    mean = numpyro.sample("mean", dist.Normal(0, 3))
    spread = numpyro.sample("spread", dist.HalfCauchy(1.0))
    if numpyro.sample("outliers", dist.Bernoulli(0.5)):
        share = dist.Categorical(probs=jnp.array([0.9, 0.1]))
        kinds = dist.Normal(mean, jnp.stack([spread, 10 * spread]))
        numpyro.sample("y", dist.MixtureSameFamily(share, kinds).expand([len(y)]), obs=y)
    else:
        numpyro.sample("y", dist.Normal(mean, spread).expand([len(y)]), obs=y)


FAR = np.array([0.4, 0.9, 0.6, 1.1, 0.7, 3.4])


def scattered_answer():
    mean = np.linspace(-15, 15, 6_001)[:, None]
    width = mean[1, 0] - mean[0, 0]

    def joint(log_spread, outliers):
        """Integrated over the mean by the trapezoidal rule, which is exact to rounding for such tails."""
        totals = []
        for value in log_spread:
            spread = np.exp(value)
            near = stats.norm.logpdf(FAR, mean, spread)
            if outliers:
                far = stats.norm.logpdf(FAR, mean, 10 * spread)
                near = np.logaddexp(np.log(0.9) + near, np.log(0.1) + far)
            inner = near.sum(axis=1) + stats.norm.logpdf(mean[:, 0], 0, 3)
            prior = stats.halfcauchy.logpdf(spread) + value
            totals.append(prior + np.log(width) + exact.logsumexp(inner))
        return np.array(totals)

    return {
        k: np.log(0.5) + exact.log_integral(lambda s, k=k: joint(s, k), -4, 8, panels=12, order=12)
        for k in (0, 1)
    }


FAMILY = {"family": "mixtures", "method": "enumeration"}
CASES = [
    *both(
        poisson_clusters,
        poisson_clusters_pyro,
        args=(POINTS,),
        key=pinned("others"),
        answer=poisson_clusters_answer,
        **FAMILY,
    ),
    *both(
        plane_clusters,
        plane_clusters_pyro,
        args=(PLANE,),
        key=pinned("extra"),
        answer=plane_clusters_answer,
        **FAMILY,
    ),
    *both(
        unknown_shares,
        unknown_shares_pyro,
        args=(UNEVEN,),
        key=pinned("three"),
        answer=unknown_shares_answer,
        **FAMILY,
    ),
    *numpyro_only(
        scattered,
        family="mixtures",
        args=(FAR,),
        key=pinned("outliers"),
        answer=scattered_answer,
        method="quadrature",
    ),
]
