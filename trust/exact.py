"""What several answers are made of: evidences of conjugate models, and integrals in logs."""

import numpy as np
from scipy import special, stats

logsumexp = special.logsumexp


def normal(y, mean=0.0, scale=1.0):
    """Log density of independent normal values, summed."""
    return float(np.sum(stats.norm.logpdf(y, mean, scale)))


def linear(y, design, scale, noise, mean=0.0):
    """Log evidence of y = mean + design @ w + noise, with w of independent normals of the scale(s)."""
    y = np.atleast_1d(y)
    design = np.asarray(design, dtype=float).reshape(len(y), -1)
    covariance = noise**2 * np.eye(len(y)) + (design * np.asarray(scale) ** 2) @ design.T
    return float(stats.multivariate_normal.logpdf(y - mean, np.zeros(len(y)), covariance))


def level(y, scale, noise, mean=0.0):
    """Log evidence of values around one normal level; none at all have evidence one."""
    return linear(y, np.ones((len(y), 1)), scale, noise, mean) if len(y) else 0.0


def linear_unknown_noise(y, design, scale, shape, rate):
    """Like `linear`, where the variance is InverseGamma(shape, rate) and weights scale with the noise."""
    design = np.asarray(design, dtype=float).reshape(len(y), -1)
    spread = np.eye(len(y)) + scale**2 * design @ design.T
    return float(stats.multivariate_t.logpdf(y, np.zeros(len(y)), rate / shape * spread, df=2 * shape))


def poisson_gamma(counts, shape, rate):
    """Log evidence of Poisson counts of one Gamma rate."""
    n, total = len(counts), np.sum(counts)
    ratio = special.gammaln(shape + total) - special.gammaln(shape)
    return float(
        shape * np.log(rate)
        + ratio
        - (shape + total) * np.log(rate + n)
        - np.sum(special.gammaln(np.asarray(counts) + 1))
    )


def log_integral(log_f, low, high, panels=200, order=20):
    """Log of the integral of exp(log_f), which takes an array; by Gauss-Legendre quadrature on panels."""
    nodes, weights = np.polynomial.legendre.leggauss(order)
    edges = np.linspace(low, high, panels + 1)
    half = np.diff(edges)[:, None] / 2
    points = (edges[:-1, None] + half + half * nodes).ravel()
    return float(logsumexp(log_f(points) + np.log((half * weights).ravel())))


def partitions(marginals, most):
    """Sums of products of evidences, over all ways to give points to 1, 2, ... most named clusters.

    `marginals[mask]` is the evidence of the points in the bits of the mask; of the empty one, what an empty
    cluster counts.
    """
    masks = np.arange(len(marginals))
    subsets = [masks[(masks & whole) == masks] for whole in masks]
    sums = [np.asarray(marginals)]
    for _ in range(most - 1):
        before = sums[-1]
        sums.append(
            np.array([marginals[parts] @ before[whole ^ parts] for whole, parts in enumerate(subsets)])
        )
    return [float(values[-1]) for values in sums]


def cluster_evidences(y, scale, noise):
    """Evidence of each subset of the rows of y around one normal centre."""
    y = np.asarray(y, dtype=float).reshape(len(y), -1)
    rows = [np.flatnonzero([mask >> i & 1 for i in range(len(y))]) for mask in range(2 ** len(y))]
    return np.exp([sum(level(column, scale, noise) for column in y[chosen].T) for chosen in rows])
