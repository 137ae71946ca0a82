"""A proposal where log densities point to: at the maximum of a quadratic that goes through them.

A posterior that is nearly normal is found at once, however far away it is from the draws, and however narrow.
"""

import numpy as np

from pathmix.evidence.proposal import Proposal

_MOST_TERMS = 300  # of the quadratic: 23 coordinates
DRAWS_PER_TERM = 3.0  # effective ones
_THINNEST = 1e-10  # variance of standardised draws across a plane that they lie in
_FLATTEST = 1e-6  # curvature, beside the largest, and beside the slope


def terms(dim: int) -> int:
    """Of a quadratic."""
    return (dim + 1) * (dim + 2) // 2


def leap(vectors: np.ndarray, log_densities: np.ndarray, weights: np.ndarray) -> Proposal | None:
    """The normal whose log density is nearest to that of the draws; None if it has no maximum."""
    dim = vectors.shape[1]
    if terms(dim) > _MOST_TERMS:
        return None
    weights = weights / weights.sum()
    known = np.isfinite(log_densities) & (weights > 1e-12)
    if known.sum() < DRAWS_PER_TERM * terms(dim):
        return None
    vectors, weights = vectors[known], weights[known]
    # Not by BLAS, as for proposals.
    loc = np.sum(weights[:, None] * vectors, axis=0)
    scale = np.sqrt(np.sum(weights[:, None] * (vectors - loc) ** 2, axis=0))
    if not np.all(scale > 0):
        return None
    standard = (vectors - loc) / scale
    if np.linalg.eigvalsh((weights[:, None] * standard).T @ standard)[0] < _THINNEST:
        return None
    levels = log_densities[known] - np.max(log_densities[known])
    left, right = np.triu_indices(dim)
    columns = [np.ones((len(standard), 1)), standard, standard[:, left] * standard[:, right]]
    columns = np.concatenate(columns, axis=1)
    weighed = (weights[:, None] * columns).T
    try:
        found = np.linalg.solve(weighed @ columns, np.sum(weighed * levels, axis=1))
    except np.linalg.LinAlgError:  # draws that are few places, many times
        return None
    slope, curvature = found[1 : dim + 1], np.zeros((dim, dim))
    curvature[left, right] = -found[dim + 1 :]
    curvature = curvature + curvature.T  # the diagonal counts twice, as in the second derivative
    values, directions = np.linalg.eigh(curvature)
    if not values[0] > _FLATTEST * max(values[-1], np.max(np.abs(slope))):
        return None
    root = directions / np.sqrt(values)
    covariance = root @ root.T
    return Proposal(loc + scale * (covariance @ slope), scale[:, None] * np.linalg.cholesky(covariance))
