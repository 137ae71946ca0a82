"""A proposal that is fitted to weighted draws: heavy tails, full covariance."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from scipy.linalg import solve_triangular as solve_lower
from scipy.special import gammaln

_FREEDOM = 7.0  # heavier tails than a normal's; a normal posterior costs it little


class Proposal(NamedTuple):
    """A multivariate t on the unconstrained vector."""

    loc: np.ndarray
    factor: np.ndarray  # Cholesky factor of its scale matrix

    @classmethod
    def of(cls, vectors: np.ndarray, weights: np.ndarray | None = None) -> "Proposal":
        """With the mean and the spread of weighted vectors."""
        given = np.ones(len(vectors)) if weights is None else weights
        weights = np.asarray(given / given.sum())
        loc = weights @ vectors
        centred = vectors - loc
        full = (centred * weights[:, None]).T @ centred
        variances = np.where(np.diag(full) > 0, np.diag(full), 1.0)
        # With few effective draws, correlations are not to be believed.
        effective = 1 / np.sum(weights**2)
        trust = effective / (effective + 2 * len(loc))
        full = trust * full + (1 - trust + 1e-9) * np.diag(variances)
        return cls(loc, np.linalg.cholesky(full))

    def draw(self, generator: np.random.Generator, count: int) -> np.ndarray:
        normal = generator.standard_normal((count, len(self.loc)))
        squared = generator.chisquare(_FREEDOM, (count, 1)) / _FREEDOM
        return self.loc + (normal / np.sqrt(squared)) @ self.factor.T

    def log_prob(self, vectors: np.ndarray) -> np.ndarray:
        """At rows of vectors, outside of compiled code."""
        inverse = solve_lower(self.factor, np.eye(len(self.loc)), lower=True)
        standard = (vectors - self.loc) @ inverse.T
        tails = np.log1p(np.einsum("ij,ij->i", standard, standard) / _FREEDOM)
        return _constant(len(self.loc)) - np.sum(np.log(np.diag(self.factor))) - _power(len(self.loc)) * tails


def log_prob(proposal: Proposal, u: jax.Array) -> jax.Array:
    """At one vector, to be compiled."""
    dim = u.shape[0]
    standard = solve_triangular(proposal.factor, u - proposal.loc, lower=True)
    tail = jnp.log1p(jnp.sum(standard**2) / _FREEDOM)
    return _constant(dim) - jnp.sum(jnp.log(jnp.diag(proposal.factor))) - _power(dim) * tail


def _power(dim: int) -> float:
    return (_FREEDOM + dim) / 2


def _constant(dim: int) -> float:
    volume = dim / 2 * math.log(_FREEDOM * math.pi)
    return float(gammaln(_power(dim)) - gammaln(_FREEDOM / 2)) - volume
