"""Exact answers, by algebra and by quadrature, and small helpers for tests."""

import numpy as np
from scipy import integrate, special, stats

import pathmix


def fit(model, *args, seed=0, budget=20_000, **options):
    options.setdefault("allocation", pathmix.SuccessiveHalving(budget=budget))
    return pathmix.SDVI(model, progress=False, **options).run(seed, *args)


def two_branches(y):
    """log Z of x >= 0 and of x < 0."""
    return {"x >= 0": log_half(y, 3), "x < 0": log_half(y, -3)}


def log_half(y, mean):
    return np.log(0.5) + stats.norm.logpdf(y, mean, np.sqrt(5))


def ten_branches(y):
    """log Z by z."""
    edges = np.array([-np.inf, *range(-4, 5), np.inf])
    return np.log(np.diff(stats.norm.cdf(edges / 5))) + stats.norm.logpdf(y, np.arange(10), np.sqrt(2))


def sum_branch(y):
    """log Z of a + b > 1 and of its complement; b and z are integrated by algebra, a by quadrature."""

    def high(a):
        return stats.norm.pdf(a) * stats.norm.sf(1 - a) * stats.norm.pdf(y, 2 + a, np.sqrt(2))

    def low(a):
        return stats.norm.pdf(a) * stats.norm.cdf(1 - a) * stats.norm.pdf(y, -1 + a, np.sqrt(2))

    return {"high": np.log(integrate.quad(high, -9, 9)[0]), "low": np.log(integrate.quad(low, -9, 9)[0])}


def polynomial(x, y, prior=(0.4, 0.3, 0.2, 0.1), noise=0.5):
    """log Z by degree: y is jointly normal once the coefficients are integrated out."""
    logs = []
    for degree, probability in enumerate(prior):
        design = np.vander(x, degree + 1, increasing=True)
        covariance = design @ design.T + noise**2 * np.eye(len(x))
        logs.append(np.log(probability) + stats.multivariate_normal.logpdf(y, np.zeros(len(x)), covariance))
    return np.array(logs)


def polynomial_posterior(x, y, degree, noise=0.5):
    design = np.vander(x, degree + 1, increasing=True)
    covariance = np.linalg.inv(design.T @ design / noise**2 + np.eye(degree + 1))
    return covariance @ design.T @ y / noise**2, covariance


softmax, logsumexp = special.softmax, special.logsumexp
